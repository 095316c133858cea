"""The simulated wires, one module for each."""
