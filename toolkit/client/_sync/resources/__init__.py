# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""The `/v1` resources of the client, a module each: its handle, and its methods."""
