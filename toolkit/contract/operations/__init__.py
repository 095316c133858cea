"""The operations of `/v1`, as data: what the server routes and documents, and clients can read.

`table.py` has all of them; nothing here knows HTTP libraries, the engine or the server.
"""
