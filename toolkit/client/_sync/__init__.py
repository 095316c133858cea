# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""The client, written once: `scripts/unasync.py` makes the sync client of it."""
