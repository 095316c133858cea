"""Accounts, keys, shares, grants and quotas: the rights of each caller."""
