"""A data directory's identity: original or copy, sandbox or real, and the owners of its leases."""
