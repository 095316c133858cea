"""Runs: one capability, executed once (specification, "Runs")."""

from pydantic import Field

from toolkit.contract.base import JsonObject, Request
from toolkit.contract.jobs import Job, Options


class RunCreate(Request):
    """`POST /v1/runs`; `version` may be left out, or stand in `name` as `name@version`."""

    target: str = "capability"
    name: str = Field(min_length=1, max_length=128)
    version: str | None = Field(default=None, min_length=1, max_length=32)
    input: JsonObject = {}
    options: Options = Options()


class Run(Job):
    """A run: a job asked for alone, under a `run_` id; `job_id` names the job itself."""

    job_id: str
