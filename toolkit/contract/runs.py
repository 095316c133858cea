"""Runs: one capability, executed once (specification, "Runs")."""

from pydantic import Field

from toolkit.contract.annotations import GivenNote, GivenTags
from toolkit.contract.base import JsonObject, Request, Usd
from toolkit.contract.choices import RunTarget
from toolkit.contract.jobs import Job, Options, Routing


class RunCreate(Request):
    """`POST /v1/runs`; `version` may be left out, or stand in `name` as `name@version`."""

    target: str = "capability"
    name: str = Field(min_length=1, max_length=128)
    version: str | None = Field(default=None, min_length=1, max_length=32)
    input: JsonObject = {}
    options: Options = Options()
    tags: GivenTags = []
    note: GivenNote = ""


class Route(Routing):
    """`POST /v1/route`: the choice that a run would get, and why; nothing is spent.

    Attributes:
        provider: who would be called first; none where nobody may be called now.
        estimated_cost_usd: what it is expected to cost; none if unknown.
        reservation_usd: the most that the call may come to, which a budget has to cover.
        candidates: every vendor and model that was looked at, the best first.
    """

    capability: str
    provider: str | None = None
    model: str | None = None
    connection_id: str | None = None
    estimated_cost_usd: Usd | None = None
    reservation_usd: Usd | None = None


class Run(Job):
    """A run: a job asked for alone, under a `run_` id, or an agent's task.

    Attributes:
        capability: the agent's `name@version`, where `target` is `agent`.
        job_id: the job itself; none where the run is an agent's.
        task_id: the task that an agent's run is.
    """

    target: RunTarget = "capability"
    job_id: str | None = None
    task_id: str | None = None
    tags: list[str] = Field(default_factory=list)
    note: str | None = None
