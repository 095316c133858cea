"""The client, written once: `scripts/unasync.py` makes the sync client of it."""
