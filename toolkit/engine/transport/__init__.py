"""Calls of vendors: the driver of flows, the network, worker processes and redaction."""
