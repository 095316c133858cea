"""Worker processes: programs of our own that carry out named functions and can be ended.

The parent starts `program.py` by its path and talks to it over two pipes; `plain` is how values
travel. Importing this package imports nothing else, as each worker does it when it starts.
"""
