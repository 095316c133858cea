"""Measurements, each with its floor run beside it; none of them is part of the test suite."""
