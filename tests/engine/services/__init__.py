"""Services of the engine."""
