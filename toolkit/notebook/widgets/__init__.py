"""The widgets, one module for each."""
