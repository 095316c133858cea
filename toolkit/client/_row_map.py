"""The rows of `client.map`: their inputs, their results, and the money of all together."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

from toolkit.client._client_state import ClientState
from toolkit.client._feeds import AsyncReader, Reader
from toolkit.client._options import check_options
from toolkit.client._output_model import add_output_schema, parse_output
from toolkit.client._row_results import (
    NOT_BEGUN,
    STOPPED,
    FailureLimit,
    RowBudget,
    RowResult,
    build_frame,
)
from toolkit.client._row_templates import check_columns, fill_templates, make_map_tag, read_rows
from toolkit.client._wait_interruption import explain_interrupt
from toolkit.client._wire.messages import make_annotation
from toolkit.client._work_views import ExecutionView, RunView
from toolkit.contract.base import to_canonical_json
from toolkit.contract.errors import ErrorCode, RequestError, WorkError
from toolkit.contract.money import format_usd
from toolkit.contract.run_options import RunOptions
from toolkit.display.progress.row_progress import RowProgress

if TYPE_CHECKING:
    import pandas as pd
    from pydantic import BaseModel

D = TypeVar("D")  # a DataFrame; in the async client, a coroutine that returns one
# Refusals that concern one row; any other concerns all rows, and ends the call.
_REFUSALS_OF_A_ROW = frozenset({ErrorCode.INVALID_REQUEST, ErrorCode.PAYLOAD_TOO_LARGE})


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run under way.

    Attributes:
        rows: the rows that get its result; empty if it only holds a part of the budget.
        input_json: the canonical JSON of its input.
    """

    rows: tuple[int, ...]
    input_json: str
    reader: AsyncReader | Reader


@dataclass(slots=True)
class RowEnding:
    """The end of a run.

    Attributes:
        key: the key under which the run is open.
        run: the run, or None if it was not begun.
        paid_by: the run, or the earlier job whose result it used: the source of its cost.
        error: the refusal of the run, or the error of the wait for it; None if it has ended.
    """

    key: int | str
    run: RunView | None = None
    paid_by: ExecutionView[Any] | None = None
    error: BaseException | None = None


class RowMap(ABC, Generic[D]):
    """The rows of one call, and the state of each row.

    Args:
        http: the service.
        name, rows, options, output_model: as for `client.map`, and so are the other arguments.
        fields: input of the capability, with templates among its texts.

    Raises:
        RequestError: `INVALID_REQUEST` for an unknown column, or another wrong argument.
    """

    def __init__(
        self,
        http: ClientState,
        name: str,
        rows: object,
        fields: Mapping[str, object],
        options: RunOptions | None,
        output_model: "type[BaseModel] | None",
        max_cost_usd: float | None,
        concurrency: int,
        on_error: Literal["stop", "continue"] | int,
        tags: Sequence[str] | None,
        note: str | None,
        *,
        progress: bool,
    ) -> None:
        if concurrency < 1:
            raise ValueError("concurrency is at least 1")
        records, columns, self._index = read_rows(rows)
        if records or columns:
            check_columns(fields, columns)
        run_options = cast("RunOptions", {"cache": True, **(options or {})})
        check_options(run_options)
        templates = add_output_schema(fields, output_model)
        self._http = http
        self._name = name
        self._inputs = [fill_templates(templates, row) for row in records]
        self._options = run_options
        self._model = output_model
        self._concurrency = concurrency
        self._budget = RowBudget(max_cost_usd)
        self._limit = FailureLimit(on_error)
        self._progress = RowProgress(len(records), max_cost_usd, is_shown=progress)
        self._tag = make_map_tag(name, templates, run_options)
        self._annotation = make_annotation([*(tags or ()), self._tag], note)
        self._resumes = bool(run_options.get("cache"))
        self._rows_by_input: dict[str, list[int]] = {}
        for row, (row_input, empty) in enumerate(self._inputs):
            if not empty:
                self._rows_by_input.setdefault(to_canonical_json(row_input), []).append(row)
        # By the row, if this call began the run; otherwise by the id of the run.
        self._open: dict[int | str, OpenRun] = {}
        self._results: dict[int, RowResult] = {}
        self._was_there: set[int] = set()  # rows whose run another call began
        self._refusal: RequestError | None = None  # the first
        self._known_runs: set[str] = set()  # ids of the runs that the budget counts
        self._counted_jobs: set[str] = set()  # equal rows share one, which is paid once
        self._failures: Counter[str] = Counter()  # failed runs of earlier calls, by input

    @abstractmethod
    def run_all(self) -> D:
        """Run every row, and return the results in order.

        Raises:
            RequestError: the refusal of the call as such, or of every row.
            KeyboardInterrupt: the caller interrupted it; runs under way go on.
        """

    def _explain_interrupt(self, error: KeyboardInterrupt) -> None:
        """Make an interrupt show the progress, and how to go on."""
        reached = self._progress.describe(self._budget.spent_usd)
        explain_interrupt(
            error,
            f"Interrupted: {reached}; {len(self._open)} runs continue."
            " Call again with the same arguments to resume.",
        )

    def _lacks_run(self, row: int) -> bool:
        """Return True if a row has no result, and no run under way."""
        return row not in self._results and all(row not in e.rows for e in self._open.values())

    def _refuse(self, row: int, error: RequestError) -> None:
        """Keep the refusal of a row.

        Raises:
            RequestError: the refusal, if it concerns all rows.
        """
        if error.code not in _REFUSALS_OF_A_ROW:
            raise error
        self._refusal = self._refusal or error
        self._budget.settle(row, 0.0)
        self._limit.note(error.code.name)
        self._leave(row, error.code.name, str(error))

    def _explain_lack(self, bound_usd: float | None) -> str:
        """Explain why a row is not begun; return "" if the budget covers it."""
        if bound_usd is None:
            return "BUDGET_EXCEEDED: its price is unknown, so no budget can cover it."
        if self._budget.covers(bound_usd):
            return ""
        # Without dollar signs, because a notebook renders text between two of them as a formula.
        left_usd = round(max(0.0, self._budget.left_usd), 9)
        bound, remainder, limit = (
            format_usd(usd).lstrip("$") for usd in (bound_usd, left_usd, self._budget.limit_usd)
        )
        return (
            f"BUDGET_EXCEEDED: it may cost {bound}, and {remainder} of {limit} US dollars are left;"
            " raise max_cost_usd and call again."
        )

    def _settle(self, key: int | str, run: RunView) -> None:
        """Count the cost of a run whose result no row uses."""
        job_id = run.record.job_id or run.id
        is_counted = job_id in self._counted_jobs
        self._counted_jobs.add(job_id)
        self._budget.settle(key, 0.0 if is_counted else run.cost_incurred_usd)

    def _keep(
        self, key: int | str, rows: Sequence[int], run: RunView, paid_by: ExecutionView[Any]
    ) -> None:
        """Keep the result of a run that has ended."""
        reason = None
        for row in rows:
            cost_usd, paid_usd = self._count_cost(run, paid_by)
            self._budget.settle(key, paid_usd)
            reason = self._keep_row(row, run, cost_usd)
        self._limit.note(reason)

    def _keep_end(self, ending: RowEnding) -> None:
        """Keep the result of an ended run, or the reason for its absence."""
        rows, run, key = self._open.pop(ending.key).rows, ending.run, ending.key
        if isinstance(ending.error, RequestError) and run is None and isinstance(key, int):
            self._refuse(key, ending.error)
        elif run is None or ending.paid_by is None:
            raise ending.error or AssertionError("a run without an end")
        elif rows:
            self._known_runs.add(run.id)
            self._keep(key, rows, run, ending.paid_by)
        else:
            self._settle(key, run)

    def _keep_row(self, row: int, run: RunView, cost_usd: float | None) -> str | None:
        """Keep the result of one row; return the reason if it has no value."""
        result = RowResult(
            run.status,
            run.output,
            cost_usd,
            run.latency_ms,
            run.id,
            cached=run.cached or row in self._was_there,
        )
        if run.error is not None:
            result.error = f"{run.error.code}: {run.error.message}"
            result.reason = run.error.code
        elif self._model is not None:
            try:
                result.value = parse_output(self._model, run.output, run.id)
            except WorkError as error:
                result.error, result.reason = str(error), error.code.name
                result.value = None
        self._end(row, result)
        return result.reason

    def _count_cost(self, run: RunView, paid_by: ExecutionView[Any]) -> tuple[float | None, float]:
        """Return the cost of a run's result, even if paid earlier, and the total paid for it."""
        job_id = run.record.cached_from or run.record.job_id or run.id
        if job_id in self._counted_jobs:
            return 0.0, 0.0
        self._counted_jobs.add(job_id)
        return paid_by.cost_usd, paid_by.cost_incurred_usd

    def _leave_stopped(self, row: int) -> bool:
        """Skip a row if too many others have failed; return whether it is skipped."""
        if self._limit.is_reached:
            self._leave(row, STOPPED, f"Not begun: {self._limit.explain()}")
        return self._limit.is_reached

    def _leave(self, row: int, reason: str, error: str) -> None:
        """Keep the reason why a row is not begun."""
        self._end(row, RowResult(NOT_BEGUN, error=error, reason=reason))

    def _end(self, row: int, result: RowResult) -> None:
        self._results[row] = result
        self._progress.add(
            self._budget.spent_usd,
            is_started=result.status != NOT_BEGUN,
            is_timed=result.run_id is not None and not result.cached,
            reason=result.reason,
            error=result.error,
        )

    def _build_frame(self) -> "pd.DataFrame":
        """Build the table of the results, in the order of the rows."""
        results = [self._results[row] for row in range(len(self._inputs))]
        frame = build_frame(results, self._index, self._model)
        frame.attrs["tag"] = self._tag
        return frame
