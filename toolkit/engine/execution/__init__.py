"""Execution: leases, jobs, attempts, caching, scheduling and admission."""
