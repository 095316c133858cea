"""Progress of awaited work: what is known of it, and how it is shown, wherever that is."""

from typing import Literal, TypeAlias

# True for what fits the place, "lines" for a line each change, False for nothing.
ProgressMode: TypeAlias = bool | Literal["lines"]
