# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""The `/v1` areas of the client, a module each: its handle, and what the area itself can do."""
