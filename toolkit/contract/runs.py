"""Runs: one capability, executed once (specification, "Runs")."""

from pydantic import Field

from toolkit.contract.annotations import GivenNote, GivenTags
from toolkit.contract.base import JsonObject, Request, Usd
from toolkit.contract.choices import RunTarget
from toolkit.contract.jobs import Job, Options, Routing


class RunCreate(Request):
    """`POST /v1/runs`; `version` may be left out, or be part of `name` as `name@version`."""

    target: str = "capability"
    name: str = Field(min_length=1, max_length=128)
    version: str | None = Field(default=None, min_length=1, max_length=32)
    input: JsonObject = {}
    options: Options = Options()
    tags: GivenTags = []
    note: GivenNote = ""


class Route(Routing):
    """`POST /v1/route`: the choice that a run would get, and its reasons; the call is free.

    Attributes:
        provider: provider of the first call; null if no provider may be called now.
        estimated_cost_usd: expected cost, in US dollars; null if unknown.
        reservation_usd: maximum cost of the call, in US dollars, which a budget must cover.
        candidates: every vendor and model that the router considered, the best first.
    """

    capability: str
    provider: str | None = None
    model: str | None = None
    connection_id: str | None = None
    estimated_cost_usd: Usd | None = None
    reservation_usd: Usd | None = None


class Run(Job):
    """A run: a single job under a `run_` id, or an agent's task.

    Attributes:
        capability: `name@version` of the agent, if `target` is `agent`.
        job_id: id of the job; null if the run is an agent's.
        task_id: id of the task of an agent's run.
    """

    target: RunTarget = "capability"
    job_id: str | None = None
    task_id: str | None = None
    tags: list[str] = Field(default_factory=list)
    note: str | None = None
