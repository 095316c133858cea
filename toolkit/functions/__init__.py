"""Functions of a caller's own process, as nodes of a workflow: identities, calls and values.

A record names a function and never holds its code. Another process that opens the same directory
reads which function a node needs, and must have that function itself.
"""

from toolkit.functions.table import FunctionTable, RegisteredFunction

__all__ = ["FunctionTable", "RegisteredFunction"]
