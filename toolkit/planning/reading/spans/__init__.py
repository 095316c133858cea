"""Passes that find literals, measures, lists and phrases, each a stretch of words."""
