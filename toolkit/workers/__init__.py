"""Worker processes: programs of our own that run named functions and can be killed.

The parent starts `program.py` by its path and talks to it over two pipes; `serialization` says how
values travel. Importing this package imports nothing else, as each worker does it when it starts.
"""
