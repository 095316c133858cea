"""A driver for the flows of capabilities, without sockets, threads or waiting."""

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from PIL import Image

from tests.support.flows import run_flow
from toolkit.plugins import (
    Blob,
    Call,
    Capability,
    Operation,
    Pause,
    Reply,
    Result,
    RunInProcess,
    RunInThread,
    Upstream,
)

Handler = Callable[[httpx.Request], httpx.Response]
ARTIFACT = "art_" + "0" * 26


@dataclass
class CapabilityDrive:
    """Runs a capability's flow and records its steps.

    `replies` answers operations in turn; an exception is raised in the flow. `handler` answers
    requests.
    """

    replies: list[Reply | Exception] = field(default_factory=list)
    handler: Handler = lambda request: httpx.Response(500)
    operations: list[Any] = field(default_factory=list)
    requests: list[httpx.Request] = field(default_factory=list)
    pauses: list[Pause] = field(default_factory=list)

    def __call__(
        self,
        capability: Capability,
        fields: Mapping[str, object],
        *,
        blobs: Mapping[str, Blob] | None = None,
        upstream: tuple[Upstream, ...] = (),
        services: Mapping[str, str] | None = None,
        has_operation: bool = True,
    ) -> Result:
        """Drive the flow to its end, and validate its output by the schema."""
        value = capability.input_model.model_validate(fields, strict=True)
        call = Call(value, blobs or {}, upstream, services or {}, has_operation)
        result: Result = run_flow(capability.flow(call), self._perform)
        output = dict(result.output)
        if "artifact_id" in capability.output_model.model_fields:
            output["artifact_id"] = ARTIFACT
        capability.output_model.model_validate(output)
        return result

    def _perform(self, step: object) -> object:
        match step:
            case httpx.Request():
                self.requests.append(step)
                response = self.handler(step)
                response.request = step
                return response
            case RunInProcess() | RunInThread():
                return step.run()
            case Pause():
                self.pauses.append(step)
                return None
        assert isinstance(step, Operation)
        self.operations.append(step)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


@pytest.fixture
def drive() -> Iterator[CapabilityDrive]:
    """A driver that checks after the test that the flow used all replies."""
    driver = CapabilityDrive()
    yield driver
    assert driver.replies == [], "the flow used fewer replies than there are"


def mp3(seconds: float) -> bytes:
    """Silent MPEG 1 layer III frames at 44.1 kHz and 128 kbit/s, of about this length."""
    frame = bytes([0xFF, 0xFB, 0x90, 0xC4]) + bytes(413)
    return frame * round(seconds * 44_100 / 1152)


def picture(form: str = "PNG", size: tuple[int, int] = (64, 32)) -> bytes:
    """A small image with a gradient."""
    file = io.BytesIO()
    Image.linear_gradient("L").resize(size).convert("RGB").save(file, form)
    return file.getvalue()
