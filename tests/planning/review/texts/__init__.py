"""Checks of texts: each with good and spoiled cases."""
