# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.runs`: one capability, or an agent, at a time."""

from collections.abc import Mapping

from toolkit.client import _wire
from toolkit.client._sync.execution import Execution
from toolkit.client._sync.resource import WorkResource
from toolkit.contract import runs


class Run(Execution[runs.Run]):
    """A run."""

    kind, resource, model = "Run", "runs", runs.Run

    @property
    def task_id(self) -> str:
        """The task of an agent's run; empty for a capability's."""
        return self.record.task_id or ""


class Runs(WorkResource[Run]):
    """`client.runs`."""

    handle = Run

    def create(
        self,
        name: str,
        input: Mapping[str, object],
        *,
        version: str | None = None,
        target: str = "capability",
        optimize_for: str | None = None,
        provider: str | None = None,
        endpoint_id: str | None = None,
        compute_id: str | None = None,
        max_cost_usd: float | None = None,
        deadline_s: float | None = None,
        cache: bool | None = None,
        fallback_on_rejection: bool = False,
    ) -> Run:
        """Ask for one capability to be executed; it is under way when this returns.

        Args:
            name: a capability, or `name@version`.
            input: its input.
            version: the version, where it is not in the name.
            target: `agent` for a run of an agent of that name.
            optimize_for: `cost`, `latency`, `quality` or `balanced`.
            provider: the provider to use: a provider id, or a connection's `prv_` id.
            endpoint_id: a serverless endpoint, for images.
            compute_id: a GPU pod to use instead.
            max_cost_usd: refuse, or stop, rather than spend more.
            deadline_s: fail rather than take longer, in seconds.
            cache: use the result of an equal job again, and keep this one's; the client's own
                choice by default.
            fallback_on_rejection: try the next vendor even with an input that one refused.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST`, `NOT_FOUND` and others.
        """
        options = _wire.drop_none(
            optimize_for=optimize_for,
            provider=provider,
            endpoint_id=endpoint_id,
            compute_id=compute_id,
            max_cost_usd=max_cost_usd,
            deadline_s=deadline_s,
            cache=self._http.choose_cache(target) if cache is None else cache,
            fallback_on_rejection=fallback_on_rejection or None,
        )
        return self._create(_wire.make_run_body(name, input, version, options, target))
