"""Maintenance of a data directory: backup, pruning, checks and the newest ids."""
