"""Crash points: named moments at which tests have this process killed; unset, they do nothing.

`TOOLKIT_CRASH_AT` is read once, when a store opens. `commit:before:17` sends SIGKILL to the process
when its seventeenth transaction is about to be committed, `commit:after:17` right after it was
committed and before its caller learns of it. `blob` stands for putting the written bytes of an
artifact in place, `lease` for acquiring, renewing or releasing a lease. Without the variable, as
everywhere but in tests, each moment is a call that does nothing.
"""

import os
import signal
from collections.abc import Callable
from typing import Literal

CRASH_VARIABLE = "TOOLKIT_CRASH_AT"

CrashKind = Literal["commit", "blob", "lease"]
CrashMoment = Literal["before", "after"]
CrashHook = Callable[[CrashMoment], None]


def find_crash_point(kind: CrashKind) -> CrashHook:
    """Return the hook to call before and after each write of a kind.

    Raises:
        ValueError: the variable does not name a moment.
    """
    setting = os.environ.get(CRASH_VARIABLE)
    if setting is None:
        return _go_on
    write_kind, _, timing = setting.partition(":")
    when, _, number = timing.partition(":")
    is_known = write_kind in ("commit", "blob", "lease") and when in ("before", "after")
    if not is_known or not number.isdecimal():
        raise ValueError(f"{CRASH_VARIABLE} must have a form such as commit:before:17")
    remaining = int(number)

    def crash(now: CrashMoment) -> None:
        nonlocal remaining
        remaining -= now == when
        if remaining == 0 and now == when:
            # Not `sys.exit`: nothing may be flushed, closed or rolled back on the way.
            os.kill(os.getpid(), signal.SIGKILL)

    return crash if write_kind == kind else _go_on


def _go_on(_now: CrashMoment) -> None:
    """Do nothing."""
