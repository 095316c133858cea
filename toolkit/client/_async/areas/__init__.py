"""The `/v1` areas of the client, a module each: its handle, and what the area itself can do."""
