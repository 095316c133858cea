# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.map`: a run for every row of a table, under one budget."""

import math
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from toolkit.client._feeds import Mailbox, Reader
from toolkit.client._replies import Reply
from toolkit.client._row_map import OpenRun, RowEnding, RowMap
from toolkit.client._row_results import EMPTY_CELL
from toolkit.client._row_templates import make_row_key
from toolkit.client._sync.http import HttpClient
from toolkit.client._sync.paging import NEXT_PAGE, ListSource
from toolkit.client._sync.resources.jobs import Job, Jobs
from toolkit.client._sync.resources.runs import Run, Runs
from toolkit.client._wire.messages import LONG_POLL_S, drop_none, make_run_body
from toolkit.contract.base import to_canonical_json
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.runs import Route

if TYPE_CHECKING:
    import pandas as pd

NEWEST = 20  # newest runs that are read to find runs of other calls


class RowMapper(RowMap[Reply["pd.DataFrame"]]):
    """Runs a capability on each row, with bounded concurrency, and keeps results as runs end.

    Runs of the same call have a tag, by which another call finds the existing runs: an answered
    input is not paid again, no matter which provider would be chosen now.
    """

    _http: HttpClient
    _endings: Mailbox[RowEnding]

    def run_all(self) -> "pd.DataFrame":
        self._endings = Mailbox()
        try:
            self._take_up_runs()
            for row in range(len(self._inputs)):
                while len(self._open) >= self._limit.limit_concurrency(self._concurrency):
                    self._keep_ended()
                if self._lacks_run(row):
                    self._begin(row)
            while self._open:
                self._keep_ended()
        except KeyboardInterrupt as error:
            self._explain_interrupt(error)
            raise
        finally:
            for open_run in self._open.values():
                open_run.reader.cancel()
        if self._refusal is not None and all(not r.run_id for r in self._results.values()):
            raise self._refusal
        return self._build_frame()

    def _take_up_runs(self) -> None:
        """Take up the runs that equal calls began, unless the caller wants new runs.

        Each of them counts: it has a result, or holds its part of the budget until it ends.
        """
        if self._resumes:
            runs = self._list_new_runs()
            for run in sorted(runs, key=lambda run: not run.done):  # results first
                self._take_up(run)
        self._budget.note_all_known()

    def _list_new_runs(self) -> list[Run]:
        """List the runs of other calls that are not known yet, newest first."""
        new_runs: list[Run] = []
        # A run that this call is starting may be in the list before its id has been answered.
        pending = Counter(
            open_run.input_json for key, open_run in self._open.items() if isinstance(key, int)
        )
        wrap = partial(Run, self._http)
        source, cursor = ListSource(self._http, Run, wrap, {"tag": self._tag}), None
        size = NEWEST if self._known_runs else NEXT_PAGE
        while True:
            page = source.read_page(size, cursor)
            unknown = [run for run in page.records if run.id not in self._known_runs]
            for run in unknown:
                input_json = to_canonical_json(run.input)
                if pending[input_json]:
                    pending[input_json] -= 1
                elif input_json in self._rows_by_input:
                    new_runs.append(run)
            cursor = page.next_cursor
            # Runs that follow a page of known runs were listed before.
            if cursor is None or not unknown:
                return new_runs

    def _take_up(self, run: Run) -> None:
        """Take up a run that another call began, for the rows without a run."""
        input_json = to_canonical_json(run.input)
        rows = tuple(row for row in self._rows_by_input[input_json] if self._lacks_run(row))
        self._known_runs.add(run.id)
        if not run.done:
            # Without a limit of its own, the cost of its retries is unbounded.
            limit_usd = run.record.options.max_cost_usd
            self._budget.hold(run.id, math.inf if limit_usd is None else limit_usd)
            self._was_there.update(rows)
            self._watch(run.id, rows, input_json, run)
        elif run.status in run.failed:
            self._failures[input_json] += 1
            self._settle(run.id, run)
        elif rows:
            self._was_there.update(rows)
            self._keep(run.id, rows, run, self._find_payer(run))
        else:
            self._settle(run.id, run)

    def _begin(self, row: int) -> None:
        """Begin the run of a row, unless an input is empty or the budget may not cover it."""
        row_input, empty = self._inputs[row]
        if empty:
            self._leave(row, EMPTY_CELL, f"The column `{empty}` is empty here.")
            return
        options: dict[str, Any] = dict(self._options)
        if self._leave_stopped(row):
            return
        if self._budget.limit_usd is not None:
            try:
                bound_usd = self._find_bound(row_input)
            except RequestError as error:
                self._refuse(row, error)
                return
            shortfall = self._await_budget(row, bound_usd)
            # Another call has begun it meanwhile, or other rows have failed.
            if not self._lacks_run(row) or self._leave_stopped(row):
                return
            if bound_usd is None or shortfall:
                self._leave(row, ErrorCode.BUDGET_EXCEEDED.name, shortfall)
                return
            self._budget.hold(row, bound_usd)
            options["max_cost_usd"] = bound_usd
        run_options = drop_none(**options)
        body = make_run_body(self._name, row_input, None, run_options) | self._annotation
        self._watch(row, (row,), to_canonical_json(row_input), body)

    def _await_budget(self, row: int, bound_usd: float | None) -> str:
        """Wait until the budget covers a row; return the reason if it does not, "" if it does."""
        if bound_usd is None:
            return self._explain_lack(None)
        while not self._budget.may_hold(bound_usd):
            if self._budget.covers(bound_usd):
                self._take_up_runs()
                if self._budget.may_hold(bound_usd) or not self._lacks_run(row):
                    break
            if not self._open:
                return self._explain_lack(bound_usd)
            self._keep_ended()
        return ""

    def _find_bound(self, row_input: Mapping[str, object]) -> float | None:
        """Find the maximum cost in USD of a run of this input. Returns None if it is unknown."""
        body = make_run_body(self._name, row_input, None, self._options)
        route = self._http.request_record(Route, "POST", "/route", json=body)
        return route.reservation_usd

    def _watch(
        self,
        key: int | str,
        rows: tuple[int, ...],
        input_json: str,
        work: Run | dict[str, object],
    ) -> None:
        """Wait for the end of a run, concurrently with all others.

        Args:
            work: the run, or the body of the run to start.
        """
        reader = Reader()
        self._open[key] = OpenRun(rows, input_json, reader)
        reader.start(partial(self._report_end, key, work, self._failures[input_json]))

    def _report_end(self, key: int | str, work: Run | dict[str, object], failures: int) -> None:
        """Start a run, unless it is there, and report its end."""
        ending = RowEnding(key)
        try:
            run = self._start(work, failures) if isinstance(work, dict) else work
            ending.run = run
            if not run.done:
                run.wait(progress=False, check=False)
            ending.paid_by = self._find_payer(run)
        except BaseException as error:
            ending.error = error
        self._endings.put(ending)

    def _start(self, body: Mapping[str, object], failures: int) -> Run:
        """Start a run, and return it at its end if that is soon, so that one request is enough.

        Calls that start the same row, such as an interrupted call and the next, send the same
        idempotency key, so that they get the same run. A row that failed has a new key.
        """
        headers = {"Idempotency-Key": make_row_key(body, failures)} if self._resumes else {}
        return Runs(self._http)._create(body, prefer_wait_s=LONG_POLL_S, headers=headers)

    def _keep_ended(self) -> None:
        """Wait until at least one run has ended, and keep the results of ended runs."""
        endings, _ = self._endings.take()
        for ending in endings:
            self._keep_end(ending)

    def _find_payer(self, run: Run) -> Job | Run:
        """Return the run or the earlier equal job that was paid for the result of a run."""
        earlier_id = run.record.cached_from
        return run if earlier_id is None else Jobs(self._http).get(earlier_id)
