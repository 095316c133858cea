"""A driver for the flows of vendors, and one operation of each vendor."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import pytest

from tests.support.flows import run_flow
from toolkit.plugins import (
    Access,
    CloneRequest,
    Flow,
    ImageRequest,
    Operation,
    Pause,
    RunInProcess,
    RunInThread,
    SpeechRequest,
    Submitted,
    TextRequest,
    Vendor,
)
from toolkit.vendors import load_vendors

SECRET = "sk-test-5d41402abc4b2a76"
VENDORS = load_vendors()
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc0"
    "0000030101009cf4f3e30000000049454e44ae426082"
)


@dataclass
class VendorDrive:
    """Answers a flow's requests in turn, and records its steps.

    An answer that is an exception is raised in the flow, as by the engine's driver.
    """

    answers: list[httpx.Response | Exception] = field(default_factory=list)
    requests: list[httpx.Request] = field(default_factory=list)
    pauses: list[Pause] = field(default_factory=list)
    submitted: list[Submitted] = field(default_factory=list)

    def __call__(self, flow: Flow[Any], *answers: httpx.Response | Exception) -> Any:
        """Drive a flow to its result."""
        self.answers.extend(answers)
        return run_flow(flow, self._perform)

    def _perform(self, step: object) -> object:
        match step:
            case httpx.Request():
                step.read()
                self.requests.append(step)
                assert self.answers, f"no answer for {step.method} {step.url}"
                answer = self.answers.pop(0)
                if isinstance(answer, Exception):
                    raise answer
                return answer
            case RunInProcess() | RunInThread():
                return step.run()
            case Pause():
                self.pauses.append(step)
                return None
        assert isinstance(step, Submitted), f"a vendor's flow yielded {step!r}"
        self.submitted.append(step)
        return None

    def body(self, place: int = -1) -> dict[str, Any]:
        """Return the JSON of a request, by default the last."""
        value = json.loads(self.requests[place].content)
        assert isinstance(value, dict)
        return value


@pytest.fixture
def drive() -> VendorDrive:
    """A driver without answers yet."""
    return VendorDrive()


def access(vendor: str, kind: str, /, **changes: Any) -> Access:
    """Return an access with the vendor's own hosts, default model and the test's key."""
    model = VENDORS[vendor].find_default_model(kind)
    usual = model.id if model else ""
    declared = VENDORS[vendor]
    default = Access(declared.base_urls, SECRET, usual, vendor=vendor, dialect=declared.dialect)
    return replace(default, **changes)


def flow(vendor: str, operation: Operation[Any], /, **changes: Any) -> Flow[Any]:
    """Return the vendor's flow for an operation."""
    declared: Vendor = VENDORS[vendor]
    return declared.operations[type(operation)](
        operation, access(vendor, operation.kind, **changes)
    )


def ok(body: object, **headers: str) -> httpx.Response:
    """Return HTTP 200 with JSON."""
    hyphenated = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(200, json=body, headers=hyphenated)


TEXT = TextRequest(prompt="Why do tides turn?", system="Be brief.", max_tokens=64)
SPEECH = SpeechRequest(text="Tides turn twice a day.")
CLONE = CloneRequest(name="Ada", audio=b"RIFF....WAVE", media_type="audio/wav")
IMAGE = ImageRequest(prompt="a tidal mill", width=512, height=512, steps=8, seed=7)

# The operations on which failures are tested; the first request of each can fail alike.
OPERATIONS: list[tuple[str, Operation[Any]]] = [
    ("minimax", TEXT),
    ("minimax", SPEECH),
    ("minimax", CLONE),
    ("openai", TEXT),
    ("anthropic", TEXT),
    ("google", TEXT),
    ("aws", TEXT),
    ("elevenlabs", SPEECH),
    ("elevenlabs", CLONE),
    ("runpod", IMAGE),
]
each_operation = pytest.mark.parametrize(
    ("vendor", "operation"), OPERATIONS, ids=[f"{v}-{o.kind}" for v, o in OPERATIONS]
)
