"""A data directory's identity: its location, its world, and the processes that own leases."""
