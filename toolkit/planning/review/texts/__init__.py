"""Checks of texts, one module for each thing that can be wrong, and what they share."""
