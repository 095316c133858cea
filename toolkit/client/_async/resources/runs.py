"""`client.runs`: one capability, or an agent, at a time."""

from collections.abc import Mapping
from typing import Unpack

from toolkit.client._async.execution import AsyncExecution
from toolkit.client._async.resource import AsyncWorkResource
from toolkit.client._options import check_options, collect_options, document_options
from toolkit.client._wire.messages import make_run_body
from toolkit.contract import runs
from toolkit.contract.choices import RunTarget
from toolkit.contract.run_options import RunOptions


class AsyncRun(AsyncExecution[runs.Run]):
    """A run."""

    kind, resource, model = "Run", "runs", runs.Run

    @property
    def task_id(self) -> str:
        """The task of an agent's run; empty for a capability's."""
        return self.record.task_id or ""


class AsyncRuns(AsyncWorkResource[AsyncRun]):
    """`client.runs`."""

    handle = AsyncRun

    @document_options(RunOptions)
    async def create(
        self,
        name: str,
        input: Mapping[str, object] | None = None,
        *,
        version: str | None = None,
        target: RunTarget = "capability",
        stream: bool = False,
        **options: Unpack[RunOptions],
    ) -> AsyncRun:
        """Ask for one capability to be executed; it is under way when this returns.

        Args:
            name: a capability, or `name@version`.
            input: its input; `client.capabilities.llm_generate(objective=…)` takes its fields one
                by one.
            version: the version, where it is not in the name.
            target: `agent` for a run of an agent of that name.
            stream: have its text come as it is written: `stream()` of the run yields it, and
                `wait()` shows it.
            **options: those of a run.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST`, `NOT_FOUND` and others.
        """
        if input is None:
            check_options(options, more="; the input is a mapping, after the name")
        chosen = collect_options(options, self._http.choose_cache(target))
        body = make_run_body(name, input or {}, version, chosen, target)
        run = await self._create(body, watches_text=stream)
        run.is_streamed = stream
        return run
