"""Leases of roots: which process works on what, and for how long."""
