"""Limits of the whole deployment: what all engines together may do, shared through the store."""
