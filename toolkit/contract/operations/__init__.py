"""The operations of `/v1`, as data: the server routes and documents them, clients can read them.

`table.py` has all of them; nothing here knows HTTP libraries, the engine or the server.
"""
