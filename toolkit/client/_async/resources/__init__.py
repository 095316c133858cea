"""The `/v1` resources of the client, a module each: its handle, and its methods."""
