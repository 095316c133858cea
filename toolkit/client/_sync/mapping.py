# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.map`: every row of a table a run, under one budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from toolkit.client._feeds import Mailbox, Reader
from toolkit.client._output_model import parse_output
from toolkit.client._row_results import NOT_BEGUN, RowBudget, RowResult
from toolkit.client._row_templates import fill_templates, make_map_tag
from toolkit.client._sync.http import HttpClient
from toolkit.client._sync.resources.jobs import Job, Jobs
from toolkit.client._sync.resources.runs import Run, Runs
from toolkit.client._wait_interruption import explain_interrupt
from toolkit.client._wire.messages import make_annotation, make_run_body
from toolkit.contract.base import to_canonical_json
from toolkit.contract.errors import ErrorCode, RequestError, WorkError
from toolkit.contract.run_options import RunOptions
from toolkit.contract.runs import Route
from toolkit.display.progress.row_progress import RowProgress
from toolkit.display.text import format_money

if TYPE_CHECKING:
    from pydantic import BaseModel

MAX_PAGE = 200
# Refusals that are about one row; any other is about all of them, and ends the call.
_REFUSALS_OF_A_ROW = frozenset({ErrorCode.INVALID_REQUEST, ErrorCode.PAYLOAD_TOO_LARGE})


@dataclass(slots=True)
class RowEnding:
    """The end of a row's run.

    Attributes:
        paid_by: the run, or the job whose result it used again: what it cost.
        error: what kept it from being waited for; none where it is over.
    """

    row: int
    paid_by: Job | Run
    error: BaseException | None = None


class RowMapper:
    """Runs a capability on each row, at most so many at once, and keeps what ends as it ends.

    Runs of the same call have a tag, by which another call finds what there is already: an input
    that was answered is not paid again, whoever would be asked today.

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
        tags, note: those of each run.
    """

    def __init__(
        self,
        http: HttpClient,
        name: str,
        rows: Sequence[Mapping[str, object]],
        fields: Mapping[str, object],
        options: RunOptions,
        output_model: "type[BaseModel] | None",
        concurrency: int,
        budget: RowBudget,
        progress: RowProgress,
        tags: Sequence[str] | None = None,
        note: str | None = None,
    ) -> None:
        self._http = http
        self._name = name
        self._inputs = [fill_templates(fields, row) for row in rows]
        self._options = options
        self._model = output_model
        self._concurrency = concurrency
        self._budget = budget
        self._progress = progress
        self.tag = make_map_tag(name, fields, options)
        self._annotation: dict[str, Any] = make_annotation([*(tags or ()), self.tag], note)
        self._open: dict[int, tuple[Run, Reader]] = {}
        self._ended: Mailbox[RowEnding] = Mailbox()
        self._results: dict[int, RowResult] = {}
        self._was_there: set[int] = set()  # rows whose run an earlier call began
        self._refusal: RequestError | None = None  # the first
        self._counted_jobs: set[str] = set()  # equal rows share one, which is paid once

    def run_all(self) -> list[RowResult]:
        """Run every row, and return what each came to, in order.

        Raises:
            RequestError: what is refused is no row but the call; or every row was refused.
            KeyboardInterrupt: the caller interrupted it; work under way goes on.
        """
        try:
            self._take_up_earlier()
            for row in range(len(self._inputs)):
                if row not in self._results and row not in self._open:
                    self._make_room()
                    self._begin(row)
            while self._open:
                self._keep_ended()
        except KeyboardInterrupt as error:
            reached = self._progress.describe(self._budget.spent_usd)
            explain_interrupt(
                error,
                f"Interrupted: {reached}; {len(self._open)} under way go on."
                " The same call takes it up again.",
            )
            raise
        finally:
            for _, reader in self._open.values():
                reader.cancel()
        if self._refusal is not None and all(not r.run_id for r in self._results.values()):
            raise self._refusal
        return [self._results[row] for row in range(len(self._inputs))]

    def _take_up_earlier(self) -> None:
        """Take up the runs that earlier calls like this one began, unless all is to be new."""
        if not self._options.get("cache"):
            return
        rows: dict[str, list[int]] = {}
        for row, (given, empty) in enumerate(self._inputs):
            if not empty:
                rows.setdefault(to_canonical_json(given), []).append(row)
        found: dict[str, Run] = {}
        for run in Runs(self._http).iterate(MAX_PAGE, tag=self.tag):
            asked = to_canonical_json(run.input)
            if asked not in rows:
                continue
            if run.status in run.failed:
                self._budget.settle(-1, run.cost_incurred_usd)
            elif asked not in found or not found[asked].done:
                found[asked] = run
        for asked, run in found.items():
            for row in rows[asked]:
                self._was_there.add(row)
                if run.done:
                    self._keep(row, run, self._find_payer(run))
                    continue
                self._make_room()
                self._watch(row, run)

    def _make_room(self) -> None:
        """Wait until one more run may be under way."""
        while len(self._open) >= self._concurrency:
            self._keep_ended()

    def _begin(self, row: int) -> None:
        """Begin the run of a row, unless it lacks what it needs or the budget may not cover it."""
        given, empty = self._inputs[row]
        if empty:
            self._end(row, RowResult(NOT_BEGUN, error=f"The column `{empty}` is empty here."))
            return
        options: dict[str, Any] = dict(self._options)
        try:
            if self._budget.limit_usd is not None:
                bound_usd = self._find_bound(given)
                while self._open and not self._budget.covers(bound_usd or 0.0):
                    self._keep_ended()
                lacking = self._explain_lack(bound_usd)
                if bound_usd is None or lacking:
                    self._end(row, RowResult(NOT_BEGUN, error=lacking))
                    return
                self._budget.hold(row, bound_usd)
                options["max_cost_usd"] = bound_usd
            run = Runs(self._http).create(self._name, given, **self._annotation, **options)
        except RequestError as error:
            if error.code not in _REFUSALS_OF_A_ROW:
                raise
            self._refusal = self._refusal or error
            self._budget.settle(row, 0.0)
            self._end(row, RowResult(NOT_BEGUN, error=str(error)))
            return
        self._watch(row, run)

    def _find_bound(self, given: Mapping[str, object]) -> float | None:
        """Find what a run of this input may come to at most; none where nobody can say."""
        body = make_run_body(self._name, given, None, self._options)
        found = self._http.request_record(Route, "POST", "/route", json=body)
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

    def _watch(self, row: int, run: Run) -> None:
        """Have the end of a run told, beside all others."""
        reader = Reader()
        self._open[row] = run, reader
        reader.start(partial(self._tell_end, row, run))

    def _tell_end(self, row: int, run: Run) -> None:
        """Wait for the end of a run, and tell of it."""
        ending = RowEnding(row, run)
        try:
            run.wait(progress=False, check=False)
            ending.paid_by = self._find_payer(run)
        except BaseException as error:
            ending.error = error
        self._ended.put(ending)

    def _keep_ended(self) -> None:
        """Wait until some runs have ended, be it the first or the last, and keep what they made."""
        ended, _ = self._ended.take()
        for one in ended:
            if one.error is not None:
                raise one.error
            run, _ = self._open.pop(one.row)
            self._keep(one.row, run, one.paid_by)

    def _keep(self, row: int, run: Run, paid_by: Job | Run) -> None:
        """Keep what a run that is over came to."""
        cost_usd, paid_usd = self._count_cost(run, paid_by)
        self._budget.settle(row, paid_usd)
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
        elif self._model is not None:
            try:
                result.value = parse_output(self._model, run.output, run.id)
            except WorkError as error:
                result.value, result.error = None, str(error)
        self._end(row, result)

    def _find_payer(self, run: Run) -> Job | Run:
        """Find what the result of a run was paid for by: itself, or an equal job before it."""
        earlier_id = run.record.cached_from
        return run if earlier_id is None else Jobs(self._http).get(earlier_id)

    def _count_cost(self, run: Run, paid_by: Job | Run) -> tuple[float | None, float]:
        """Count the cost of a run's result, whenever it was paid, and all that was paid for it."""
        job_id = run.record.cached_from or run.record.job_id or run.id
        if job_id in self._counted_jobs:
            return 0.0, 0.0
        self._counted_jobs.add(job_id)
        return paid_by.cost_usd, paid_by.cost_incurred_usd

    def _end(self, row: int, result: RowResult) -> None:
        self._results[row] = result
        self._progress.add(
            self._budget.spent_usd,
            failed=result.error is not None,
            begun=result.status != NOT_BEGUN,
            paced=result.run_id is not None and not result.cached,
        )
