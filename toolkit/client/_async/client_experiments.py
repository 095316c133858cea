"""Many runs of one kind, and two pieces of work beside each other: a client's experiments."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from toolkit.client._async.client_resources import AsyncClientResources
from toolkit.client._options import check_arguments
from toolkit.client._unknown_ids import find_common_resource
from toolkit.contract.run_options import RunOptions

if TYPE_CHECKING:
    import pandas as pd
    from pydantic import BaseModel

    from toolkit.client._async.execution import AsyncExecution
    from toolkit.client._async.resources.tasks import AsyncTask
    from toolkit.client._async.resources.workflows import AsyncWorkflowRun
    from toolkit.display.records.comparison import WorkComparison


class AsyncClientExperiments(AsyncClientResources):
    """The calls of a client that are about several pieces of work."""

    async def map(
        self,
        name: str,
        rows: "pd.DataFrame | pd.Series[Any] | Iterable[Mapping[str, object] | str]",
        *,
        output_model: "type[BaseModel] | None" = None,
        max_cost_usd: float | None = None,
        concurrency: int = 8,
        on_error: Literal["stop", "continue"] | int = "stop",
        options: RunOptions | None = None,
        progress: bool = True,
        tags: Sequence[str] | None = None,
        note: str | None = None,
        **fields: object,
    ) -> "pd.DataFrame":
        """Run a capability on every row of a table, and return a row of results for each.

        The same call resumes where it was interrupted, even by a kernel that died: results that
        are there are used again, unpaid, and rows that failed are tried again.

        Args:
            name: a capability, or `name@version`.
            rows: a DataFrame, or mappings; or texts (a list or a Series), as a column `text`.
            output_model: a pydantic model that each answer has to fit; its fields are columns.
            max_cost_usd: one budget over all rows, paid now or before. Runs in flight count with
                their maximum cost, no matter which call began them. A row that the rest may not
                cover is not begun, and says so.
            concurrency: how many runs are under way at most; 3 until one has succeeded.
            on_error: "stop" to begin no more rows after 10 failures with the same code; a number
                for another limit; "continue" for none. Errors that end by themselves, such as
                those of a vendor that is away, do not count.
            options: those of each run, such as `{"provider": "openai"}`.
            tags, note: those of each run.
            progress: whether a line shows how far it is, its cost, and why rows failed.
            **fields: the input; `{column}` in a text stands for a row's value.

        Returns:
            the answers' fields, `status`, `cost_usd`, `latency_ms`, `run_id`, `cached` and
            `error`, by the index of `rows`; `attrs["tag"]` is the tag that its runs share.

        Raises:
            RequestError: `INVALID_REQUEST` for a column that there is not, and others for what is
                wrong with all rows.
            KeyboardInterrupt: it was interrupted, in one line; runs under way go on.
        """
        from toolkit.client._async.mapping import AsyncRowMapper

        return await AsyncRowMapper(
            self._http,
            name,
            rows,
            fields,
            options,
            output_model,
            max_cost_usd,
            concurrency,
            on_error,
            tags,
            note,
            progress=progress,
        ).run_all()

    @check_arguments("compare takes two pieces of work; `runs.list().to_frame()` has many")
    async def compare(
        self,
        a: "str | AsyncExecution[Any] | AsyncWorkflowRun | AsyncTask",
        b: "str | AsyncExecution[Any] | AsyncWorkflowRun | AsyncTask",
    ) -> "WorkComparison":
        """Compare two runs, two workflows or two tasks: input, route, text, cost and time.

        Of tasks, the workflows that they deliver are compared, or else those that they ran last.

        Args:
            a: an id, or what `runs`, `workflows` or `tasks` gave.
            b: another one of its kind.

        Raises:
            RequestError: `INVALID_REQUEST` for two of different kinds, `NOT_FOUND`.
        """
        from toolkit.display.records.comparison import (
            WorkComparison,
            compare_jobs,
            compare_tasks,
            compare_workflows,
            find_workflow_shown,
            list_jobs_apart,
        )

        first, second = (one if isinstance(one, str) else one.id for one in (a, b))
        kind = find_common_resource(first, second)
        if kind in ("runs", "jobs"):
            area = getattr(self, kind)
            one, other = await area.get(first), await area.get(second)
            return WorkComparison(kind, first, second, compare_jobs(one.record, other.record))
        tasks, ids = [], [first, second]
        if kind == "tasks":
            tasks = [(await self.tasks.get(id)).record for id in ids]
            found = [find_workflow_shown(task) for task in tasks]
            ids = [id for id in found if id is not None]
        workflows, jobs = [(await self.workflows.get(id)).record for id in ids], {}
        if len(workflows) == 2:
            apart = list_jobs_apart(*workflows)
            jobs = {id: (await self.jobs.get(id)).record for id in apart}
        if kind == "tasks":
            facts = compare_tasks(tasks[0], tasks[1], workflows, jobs)
        else:
            facts = compare_workflows(workflows[0], workflows[1], jobs)
        return WorkComparison(kind, first, second, facts)
