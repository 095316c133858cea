"""Capabilities with the status `planned`: listed before they can be used."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.contract.raw_http import SETTINGS, RawCaller, open_door
from tests.contract.specification.sections import section
from toolkit.engine import Registry
from toolkit.settings import Settings

STATUS = "States and transitions > Capability status"


@pytest.fixture
def early(settings: Settings) -> Iterator[RawCaller]:
    """A caller of a service whose `video.generate` is planned."""
    text = Registry.load().find("llm.generate")
    video = replace(text, id="video.generate", status="planned", alias_of=None)
    asked = settings.model_copy(update=SETTINGS)
    with open_door(asked, Registry.load([video])) as door:
        yield door.sign_up("minimax")


@section(STATUS)
@section("Versioning")
def test_a_planned_capability_is_listed(early: RawCaller) -> None:
    """Given one that is planned, then it is listed and read with that status."""
    listed = {c["id"]: c["status"] for c in early.get("/v1/capabilities")["data"]["items"]}
    assert listed.pop("video.generate") == "planned"
    assert set(listed.values()) == {"available"}
    assert early.get("/v1/capabilities/video.generate@1")["data"]["status"] == "planned"


@section(STATUS)
def test_a_planned_capability_is_not_run(early: RawCaller) -> None:
    """Given one that is planned, then neither a run, a workflow nor a task gets it done."""
    given = {"objective": "Tea"}
    node = {"id": "a", "capability": "video.generate", "input": given}
    for path, body in (
        ("/v1/runs", {"target": "capability", "name": "video.generate", "input": given}),
        ("/v1/workflows", {"name": "w", "nodes": [node]}),
    ):
        answer = early.send("POST", path, body)
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "CAPABILITY_UNAVAILABLE"
    assert early.task("A video about tea")["status"] == "blocked"
