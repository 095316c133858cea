"""Crash points: named moments at which tests have this process killed; unset, they do nothing.

`TOOLKIT_CRASH_AT` is read once, when a store opens. `commit:before:17` sends SIGKILL to the
process when its seventeenth transaction is about to be committed, `commit:after:17` right after
it was committed and before anybody is told so. `blob` stands for putting the written bytes of an
artifact in place, `lease` for taking, renewing or letting go of a lease. Where the variable is not
set, which is everywhere but in tests, each moment costs one comparison with `None`.
"""

import os
import signal
from collections.abc import Callable
from typing import Literal

VARIABLE = "TOOLKIT_CRASH_AT"

Kind = Literal["commit", "blob", "lease"]
When = Literal["before", "after"]
Crash = Callable[[When], None]


def planted(kind: Kind) -> Crash | None:
    """Return the hook to call before and after each write of a kind, or None if none is set.

    Raises:
        ValueError: the variable does not name a moment.
    """
    asked = os.environ.get(VARIABLE)
    if asked is None:
        return None
    named, _, rest = asked.partition(":")
    when, _, number = rest.partition(":")
    known = named in ("commit", "blob", "lease") and when in ("before", "after")
    if not known or not number.isdecimal():
        raise ValueError(f"{VARIABLE} is such as commit:before:17")
    left = int(number)

    def crash(now: When) -> None:
        nonlocal left
        left -= now == when
        if left == 0 and now == when:
            # Not `sys.exit`: nothing may be flushed, closed or rolled back on the way.
            os.kill(os.getpid(), signal.SIGKILL)

    return crash if named == kind else None
