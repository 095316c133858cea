"""The results of rows: the result of each under one budget, and a table of all results."""

import math
import types
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Union, get_args, get_origin

from toolkit.contract.errors import ErrorCode, RequestError

if TYPE_CHECKING:
    import pandas as pd
    from pydantic import BaseModel

_COLUMN_TYPES: dict[Any, str] = {
    int: "Int64", float: "Float64", bool: "boolean", str: "string", date: "datetime64[us]",
    datetime: "datetime64[us, UTC]",
}  # fmt: skip


NOT_BEGUN: Final = "not begun"  # the status of a row without a run
PILOT_ROWS: Final = 3  # rows under way at most, until one of them has succeeded
STOP_AFTER: Final = 10  # failures with the same code, after which no other row is begun
STOPPED: Final = "stopped"
EMPTY_CELL: Final = "empty cell"
# A retry may help one row, but many such failures have the same cause in the call.
_CODES_OF_A_CALL: Final = frozenset({ErrorCode.INVALID_OUTPUT, ErrorCode.FUNCTION_FAILED})


@dataclass(slots=True)
class RowResult:
    """The result of one row.

    Attributes:
        status: status of its run, or `NOT_BEGUN`.
        value: the answer: an instance of the output model, or the output.
        cost_usd: cost of the result in US dollars, even if it was paid earlier; None if unknown.
        cached: whether the result existed before, so that nothing was paid for it now.
        error: why there is no value, in one sentence; None if there is one.
        reason: why there is no value, as the code of an error, `EMPTY_CELL` or `STOPPED`.
    """

    status: str
    value: object = None
    cost_usd: float | None = None
    latency_ms: int | None = None
    run_id: str | None = None
    cached: bool = False
    error: str | None = None
    reason: str | None = None


class FailureLimit:
    """The limit at which a call begins no more rows, because too many failed for the same reason.

    Temporary errors, such as that of an unreachable vendor, do not count. Until a row has
    succeeded, few rows are under way at once, so that a fault of all rows is paid for few.

    Args:
        on_error: "stop" for a limit of `STOP_AFTER` rows, "continue" for none, or the limit.

    Raises:
        RequestError: `INVALID_REQUEST` for any other value.

    >>> limit = FailureLimit(2)
    >>> for _ in range(2):
    ...     limit.note("INVALID_OUTPUT")
    >>> limit.explain()
    '2 rows failed with INVALID_OUTPUT; correct the cause and call again, or set on_error.'
    """

    def __init__(self, on_error: Literal["stop", "continue"] | int) -> None:
        limits = {"stop": STOP_AFTER, "continue": math.inf}
        limit = limits.get(on_error) if isinstance(on_error, str) else on_error
        if limit is None or isinstance(limit, bool) or not limit >= 1:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f'on_error is "stop", "continue" or a number of rows, not {on_error!r}.',
            )
        self._limit = limit
        self._has_succeeded = False
        self._failures: Counter[str] = Counter()

    def note(self, reason: str | None) -> None:
        """Note how an answer ended: None for a success, or the code of its error."""
        if reason is None:
            self._has_succeeded = True
        elif reason in ErrorCode.__members__:
            code = ErrorCode[reason]
            if not code.retryable or code in _CODES_OF_A_CALL:
                self._failures[reason] += 1

    @property
    def is_reached(self) -> bool:
        """Return True once no more rows may begin."""
        return self._count_most() >= self._limit

    def limit_concurrency(self, concurrency: int) -> int:
        """Limit how many rows may be under way; rows that are not begun need no limit."""
        if self._has_succeeded or self.is_reached:
            return concurrency
        return math.ceil(min(concurrency, PILOT_ROWS, self._limit - self._count_most()))

    def _count_most(self) -> int:
        return max(self._failures.values(), default=0)

    def explain(self) -> str:
        """Return why no more rows are begun."""
        ((code, count),) = self._failures.most_common(1)
        rows = f"{count} row{'s' if count > 1 else ''}"
        return f"{rows} failed with {code}; correct the cause and call again, or set on_error."


class RowBudget:
    """One budget over all rows: the amount spent of it, and the amount held for runs under way.

    Calls in other processes may share the budget, and see the runs of this call only when they
    list them. So a call holds at most half of the rest before it lists the runs again: two calls
    that hold at the same time stay within the budget. If no run is under way, a call may hold the
    whole rest: two calls that find this at the same moment may exceed the limit by the cost of
    one row.

    Args:
        limit_usd: US dollars; None for no limit.
    """

    def __init__(self, limit_usd: float | None) -> None:
        self.limit_usd = limit_usd
        self.spent_usd = 0.0
        self._held: dict[int | str, float] = {}
        self._share_usd = 0.0  # the amount that may be held until the runs are listed again
        self._is_alone = False

    @property
    def left_usd(self) -> float:
        """US dollars that are neither spent nor held."""
        return (self.limit_usd or 0.0) - self.spent_usd - sum(self._held.values())

    def covers(self, bound_usd: float) -> bool:
        """Return True if the rest of the budget covers the maximum cost of a row."""
        return self.limit_usd is None or bound_usd <= self.left_usd + 1e-12

    def may_hold(self, bound_usd: float) -> bool:
        """Return True if a row may begin now, even if other calls have begun runs meanwhile."""
        if self.limit_usd is None:
            return True
        # If no call has a run under way, the rest is not shared.
        share_usd = self.left_usd if self._is_alone else self._share_usd
        return self.covers(bound_usd) and bound_usd <= share_usd + 1e-12

    def note_all_known(self) -> None:
        """Note that the runs of all calls are counted as of now."""
        self._share_usd = self.left_usd / 2
        self._is_alone = not self._held

    def hold(self, key: int | str, bound_usd: float) -> None:
        """Hold the maximum cost of a run."""
        self._held[key] = bound_usd
        self._share_usd -= bound_usd
        self._is_alone = False

    def settle(self, key: int | str, paid_usd: float) -> None:
        """Replace the amount held for a run by the amount paid."""
        self._held.pop(key, None)
        self.spent_usd += paid_usd


def build_frame(
    results: Sequence[RowResult], index: Any, model: "type[BaseModel] | None"
) -> "pd.DataFrame":
    """Build the table of the results: the answer's fields, then facts of the runs.

    Args:
        index: index of the rows; None numbers them.
        model: the output model, whose fields are columns of their types.
    """
    import pandas as pd

    data: dict[str, Any] = {}
    if model is None:
        names = {
            name: None
            for result in results
            if isinstance(result.value, dict)
            for name in result.value
        }
        for name in names:
            column = [
                result.value.get(name) if isinstance(result.value, dict) else None
                for result in results
            ]
            data[name] = pd.Series(column, dtype=object).convert_dtypes()
    else:
        for name, field in model.model_fields.items():
            column = [getattr(result.value, name, None) for result in results]
            data[name] = pd.Series(column, dtype=_find_column_type(field.annotation))
    facts: dict[str, str] = {
        "status": "string", "cost_usd": "Float64", "latency_ms": "Int64", "run_id": "string",
        "cached": "boolean", "error": "string",
    }  # fmt: skip
    for name, kind in facts.items():
        column = [getattr(result, name) for result in results]
        data[f"run_{name}" if name in data else name] = pd.Series(column, dtype=kind)
    frame = pd.DataFrame(data)
    if index is not None:
        frame.index = index
    return frame


def _find_column_type(annotation: Any) -> str:
    """Find the type of the column for a field; `object` if the field is no plain value."""
    if get_origin(annotation) is Annotated:
        return _find_column_type(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        inner = [member for member in get_args(annotation) if member is not type(None)]
        return _find_column_type(inner[0]) if len(inner) == 1 else "object"
    if get_origin(annotation) is Literal:
        kinds = {type(choice) for choice in get_args(annotation)}
        return _COLUMN_TYPES.get(kinds.pop(), "object") if len(kinds) == 1 else "object"
    return _COLUMN_TYPES.get(annotation, "object")
