"""Upkeep of a database of PostgreSQL: looked at, checked, pruned, dumped and moved."""
