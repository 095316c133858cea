"""A capability that takes a given time, registered like a third party's."""

from pydantic import Field

from toolkit import Workflow
from toolkit.contract.base import Record, Request
from toolkit.contract.errors import ErrorCode, WorkError
from toolkit.engine import Registry
from toolkit.plugins import Call, Capability, Flow, Result, pause


class NapInput(Request):
    """The time to do nothing."""

    seconds: float = Field(ge=0, le=60)
    fails: bool = False


class NapOutput(Record):
    """The time that was spent."""

    seconds: float


def take_nap(call: Call[NapInput]) -> Flow[Result]:
    """Do nothing for a while, or fail; without a pause if the time is 0."""
    if call.input.seconds or not call.input.fails:
        yield from pause(call.input.seconds)
    if call.input.fails:
        raise WorkError(ErrorCode.INVALID_OUTPUT, "Woken too early.")
    return Result({"seconds": call.input.seconds})


SLOW_CAPABILITY = Capability(
    id="test.nap",
    title="Nap",
    description="Does nothing for a while",
    input_model=NapInput,
    output_model=NapOutput,
    flow=take_nap,
)


def load_slow_registry() -> Registry:
    """Load the built-in capabilities and the nap."""
    return Registry.load(extra=[SLOW_CAPABILITY])


def build_nap_workflow(nodes: int, seconds: float) -> Workflow:
    """Build a chain of naps."""
    wf = Workflow("naps")
    last: list[str] = []
    for i in range(nodes):
        last = [wf.add(f"n{i}", "test.nap", seconds=seconds, depends_on=last)]
    return wf
