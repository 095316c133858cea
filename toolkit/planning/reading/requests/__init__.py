"""Passes that find what is asked for, and tie it together."""
