"""Accounts, keys, shares, grants and quotas: who may do what."""
