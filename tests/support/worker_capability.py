"""A capability that runs a given function in a worker process, like a third party's."""

from typing import Any

from pydantic import Field

from tests.support import worker_functions
from toolkit.contract.base import Record, Request
from toolkit.engine import Registry
from toolkit.plugins import Call, Capability, Flow, Result, run_in_process


class WorkInput(Request):
    """The work to do."""

    task: str
    args: list[int | str] = Field(default=[])


class WorkOutput(Record):
    """The result of the work."""

    result: object = None


def run_task(call: Call[WorkInput]) -> Flow[Result]:
    """Run the function that the input names."""
    task: Any = getattr(worker_functions, call.input.task, lambda: None)
    return Result({"result": (yield from run_in_process(task, *call.input.args))})


WORK = Capability(
    id="test.work",
    title="Work",
    description="Runs a given function",
    input_model=WorkInput,
    output_model=WorkOutput,
    flow=run_task,
)


def load_work_registry() -> Registry:
    """Load the built-in capabilities and this capability."""
    return Registry.load(extra=[WORK])
