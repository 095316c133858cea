"""Capabilities with the status `planned`: listed before they can be used."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.contract.raw_http import SETTINGS, RawCaller, build_run_body, open_door
from tests.contract.specification.sections import section
from toolkit.engine import Registry
from toolkit.settings import Settings

STATUS = "States and transitions > Capability status"


@pytest.fixture
def early(settings: Settings) -> Iterator[RawCaller]:
    """A caller of a service whose `video.generate` is planned."""
    text = Registry.load().find("llm.generate")
    video = replace(text, id="video.generate", status="planned", alias_of=None)
    with open_door(settings.model_copy(update=SETTINGS), Registry.load([video])) as door:
        yield door.sign_up("minimax")


@section(STATUS)
@section("Versioning")
def test_lists_a_planned_capability(early: RawCaller) -> None:
    """Given a planned capability, then it is listed and read with that status."""
    statuses = {c["id"]: c["status"] for c in early.get("/v1/capabilities")["data"]["items"]}
    assert statuses.pop("video.generate") == "planned"
    assert set(statuses.values()) == {"available"}
    assert early.get("/v1/capabilities/video.generate@1")["data"]["status"] == "planned"


@section(STATUS)
def test_does_not_run_a_planned_capability(early: RawCaller) -> None:
    """Given a planned capability, then no run, workflow or task uses it."""
    input = {"objective": "Tea"}
    node = {"id": "a", "capability": "video.generate", "input": input}
    for path, body in (
        ("/v1/runs", build_run_body("video.generate", input)),
        ("/v1/workflows", {"name": "w", "nodes": [node]}),
    ):
        assert early.read_error("POST", path, body)[:2] == (400, "CAPABILITY_UNAVAILABLE")
    assert early.task("A video about tea")["status"] == "blocked"
