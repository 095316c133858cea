"""The client, written once: `scripts/unasync.py` makes the other one of it."""
