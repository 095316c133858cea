"""What the operator of a server sees: log lines, metrics and traces, all from one seam.

`toolkit serve` sets this up; an embedded engine has none of it and stays silent.
"""

from toolkit.observability.watching import Watch, Watching, watching

__all__ = ["Watch", "Watching", "watching"]
