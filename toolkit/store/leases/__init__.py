"""Leases of roots: the right of one process to work on a root for some time."""
