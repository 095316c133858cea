"""Measurements, each with its floor run beside it; tests only show that those of load work."""
