"""Functions of a caller's own process, as nodes of a workflow: told apart, called, their values.

A record names a function and never holds its code: who opens the same directory elsewhere finds
which function is asked for, and has to have it.
"""

from toolkit.functions.table import FunctionTable, RegisteredFunction

__all__ = ["FunctionTable", "RegisteredFunction"]
