"""`client.map`: every row of a table a run, under one budget."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolkit.client._async.http import AsyncHttpClient
from toolkit.client._async.resources.jobs import AsyncJob, AsyncJobs
from toolkit.client._async.resources.runs import AsyncRun, AsyncRuns
from toolkit.client._output_model import parse_output
from toolkit.client._row_results import RowBudget, RowResult
from toolkit.client._row_templates import fill_templates
from toolkit.client._wait_interruption import WaitInterruptedError
from toolkit.client._wire.messages import make_run_body
from toolkit.contract.errors import ErrorCode, RequestError, WorkError
from toolkit.contract.run_options import RunOptions
from toolkit.contract.runs import Route
from toolkit.display.progress.row_progress import RowProgress
from toolkit.display.text import format_money

if TYPE_CHECKING:
    from pydantic import BaseModel

# Refusals that are about one row; any other is about all of them, and ends the call.
_REFUSALS_OF_A_ROW = frozenset({ErrorCode.INVALID_REQUEST, ErrorCode.PAYLOAD_TOO_LARGE})


class AsyncRowMapper:
    """Runs a capability on each row, at most so many at once.

    What makes the same call resume is the service's cache of results: it is kept for as long as
    the runs are, and a run that equals one under way waits for that one's result.

    Args:
        http: the service.
        name: a capability, or `name@version`.
        rows: what fills the templates, in order.
        fields: the input, with templates among its texts.
        options: those of each run.
        output_model: the model that each answer has to fit, if any.
        concurrency: how many runs are under way at most.
        budget: the budget over all rows.
        progress: where rows that are done are counted.
        annotation: the tags and the note of each run, as in a body.
    """

    def __init__(
        self,
        http: AsyncHttpClient,
        name: str,
        rows: Sequence[Mapping[str, object]],
        fields: Mapping[str, object],
        options: RunOptions,
        output_model: "type[BaseModel] | None",
        concurrency: int,
        budget: RowBudget,
        progress: RowProgress,
        annotation: Mapping[str, Any],
    ) -> None:
        self._http = http
        self._name = name
        self._rows = rows
        self._fields = fields
        self._options = options
        self._model = output_model
        self._concurrency = concurrency
        self._budget = budget
        self._progress = progress
        self._annotation = annotation
        self._open: deque[tuple[int, AsyncRun]] = deque()
        self._results: dict[int, RowResult] = {}
        self._refusal: RequestError | None = None  # the first
        self._counted_jobs: set[str] = set()  # equal rows share one, which is paid once

    async def run_all(self) -> list[RowResult]:
        """Run every row, and return what each came to, in order.

        Raises:
            RequestError: what is refused is no row but the call; or every row was refused.
            WaitInterruptedError: the caller interrupted it; work under way goes on.
        """
        try:
            for row in range(len(self._rows)):
                while len(self._open) >= self._concurrency:
                    await self._finish_oldest()
                await self._begin(row)
            while self._open:
                await self._finish_oldest()
        except KeyboardInterrupt:
            raise WaitInterruptedError(
                f"Interrupted: {self._progress.describe(self._budget.spent_usd)};"
                f" {len(self._open)} under way go on. The same call takes it up again."
            ) from None
        if self._refusal is not None and all(not r.run_id for r in self._results.values()):
            raise self._refusal
        return [self._results[row] for row in range(len(self._rows))]

    async def _begin(self, row: int) -> None:
        """Begin the run of a row, unless it lacks what it needs or the budget may not cover it."""
        given, empty = fill_templates(self._fields, self._rows[row])
        if empty:
            self._end(row, RowResult("not begun", error=f"The column `{empty}` is empty here."))
            return
        options: dict[str, Any] = dict(self._options)
        try:
            if self._budget.limit_usd is not None:
                bound_usd = await self._find_bound(given)
                while self._open and not self._budget.covers(bound_usd or 0.0):
                    await self._finish_oldest()
                lacking = self._explain_lack(bound_usd)
                if bound_usd is None or lacking:
                    self._end(row, RowResult("not begun", error=lacking))
                    return
                self._budget.hold(row, bound_usd)
                options["max_cost_usd"] = bound_usd
            run = await AsyncRuns(self._http).create(
                self._name, given, **self._annotation, **options
            )
        except RequestError as error:
            if error.code not in _REFUSALS_OF_A_ROW:
                raise
            self._refusal = self._refusal or error
            self._budget.settle(row, 0.0)
            self._end(row, RowResult("not begun", error=str(error)))
            return
        self._open.append((row, run))

    async def _find_bound(self, given: Mapping[str, object]) -> float | None:
        """Find what a run of this input may come to at most; none where nobody can say."""
        body = make_run_body(self._name, given, None, self._options)
        found = await self._http.request_record(Route, "POST", "/route", json=body)
        return found.reservation_usd

    def _explain_lack(self, bound_usd: float | None) -> str:
        """Say why a row is not begun; "" where the budget covers it."""
        if bound_usd is None:
            return "BUDGET_EXCEEDED: its price is unknown, so that no budget can cover it."
        if self._budget.covers(bound_usd):
            return ""
        # Without signs of dollars: two of them in a cell of a table are a formula to a notebook.
        left_usd = round(max(0.0, self._budget.left_usd), 9)
        bound, left, limit = (
            format_money(usd).lstrip("$") for usd in (bound_usd, left_usd, self._budget.limit_usd)
        )
        return (
            f"BUDGET_EXCEEDED: it may cost {bound}, and {left} of {limit} US dollars are left;"
            " raise max_cost_usd and call again."
        )

    async def _finish_oldest(self) -> None:
        """Wait for the run that was begun first, and keep what it came to."""
        row, run = self._open[0]
        await run.wait(progress=False, check=False)
        cost_usd, paid_usd = await self._find_cost(run)
        result = RowResult(
            run.status, run.output, cost_usd, run.latency_ms, run.id, cached=run.cached
        )
        if run.error is not None:
            result.error = f"{run.error.code}: {run.error.message}"
        elif self._model is not None:
            try:
                result.value = parse_output(self._model, run.output, run.id)
            except WorkError as error:
                result.value, result.error = None, str(error)
        self._open.popleft()
        self._budget.settle(row, paid_usd)
        self._end(row, result)

    async def _find_cost(self, run: AsyncRun) -> tuple[float | None, float]:
        """Find the cost of a run's result, whenever it was paid, and all that was paid for it."""
        earlier_id = run.record.cached_from
        job_id = earlier_id or run.record.job_id or run.id
        if job_id in self._counted_jobs:
            return 0.0, 0.0
        self._counted_jobs.add(job_id)
        paid: AsyncJob | AsyncRun = run
        if earlier_id is not None:
            paid = await AsyncJobs(self._http).get(earlier_id)
        return paid.cost_usd, paid.cost_incurred_usd

    def _end(self, row: int, result: RowResult) -> None:
        self._results[row] = result
        self._progress.add(
            self._budget.spent_usd,
            failed=result.error is not None,
            paced=result.run_id is not None and not result.cached,
        )
