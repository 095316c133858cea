"""Limits that all engines of a deployment share through the store."""
