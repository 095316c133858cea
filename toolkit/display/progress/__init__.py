"""Progress of awaited work: its state, and its display in notebooks, terminals and logs."""

from typing import Literal, TypeAlias

# True fits the place, "lines" prints a line for each change, False shows nothing.
ProgressMode: TypeAlias = bool | Literal["lines"]
