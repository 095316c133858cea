"""The steps of planning and review in a worker process find the same as in this one."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import Field, create_model

from toolkit.contract.base import Request
from toolkit.contract.plans import Constraints
from toolkit.engine import Registry
from toolkit.planning import steps
from toolkit.planning.capability_documents import describe_capabilities, rebuild_capabilities
from toolkit.planning.keywords.planner import make_plan
from toolkit.planning.plan_draft import PlannerView
from toolkit.planning.plan_validator import PlanRules, find_plan_faults
from toolkit.plugins import Capability
from toolkit.workers.process import WorkerProcess

OBJECTIVES = [
    "A short poem about tides",
    "Research bats, write a poem about them, read it aloud slowly, and make a card 1200x630",
    "Three images of a dog, 512x512, seed 7",
    "A video of cats",
    "Ein dunkles Plakat mit dem Titel „Flut“",
]


@pytest.fixture(scope="module")
def view() -> PlannerView:
    """The built-in capabilities, one of them with a model that no other process can import."""
    registry = Registry.load()
    capabilities = [
        _hide_model(one) if one.id in {"composition.layout", "image.generate"} else one
        for one in registry.list_newest()
    ]
    providers = {
        one.id: frozenset(vendor.id for vendor in registry.find_vendors(one))
        for one in capabilities
    }
    return PlannerView(capabilities, frozenset({"openai"}), providers)


def _hide_model(capability: Capability) -> Capability:
    """Replace a capability's input by one that only this process has."""
    from dataclasses import replace

    class Hidden(capability.input_model):  # type: ignore[name-defined, misc]
        pass

    return replace(capability, input_model=Hidden)


def call_in_process(function: Any, *args: object) -> Any:
    """Call a function in a worker process."""
    worker = WorkerProcess(0)
    try:
        answer = worker.call_function(function.__module__, function.__name__, args, 60.0)
        assert "value" in answer, answer
        return answer["value"]
    finally:
        worker.kill()
        worker.join()


def test_plans_the_same_in_a_worker_process(view: PlannerView) -> None:
    """Given objectives, a worker process makes the plans that this process makes."""
    written = steps.write_view(view)
    free = Constraints(max_cost_usd=0)
    for objective in OBJECTIVES:
        for constraints in (Constraints(), free):
            made = steps.plan_objective(objective, constraints.model_dump_json(), written)
            assert steps.DRAFT.validate_json(made) == make_plan(objective, constraints, view)
    made = call_in_process(steps.plan_objective, OBJECTIVES[1], "{}", written)
    assert steps.DRAFT.validate_json(made) == make_plan(OBJECTIVES[1], Constraints(), view)


def test_finds_the_same_faults_in_a_worker_process(view: PlannerView) -> None:
    """Given a plan with faults, a worker process finds those that this process finds."""
    rules = PlanRules(
        {one.id: one for one in view.capabilities}, allowed=frozenset({"speech.generate"})
    )
    draft = make_plan(OBJECTIVES[1], Constraints(), view)
    nodes = [node.model_copy(update={"input": {"width": 9_999}}) for node in draft.nodes]
    given = steps.NODES.dump_json(nodes)
    found = steps.find_faults(given, ["none"], steps.write_rules(rules))
    expected = find_plan_faults(nodes, ["none"], rules)
    assert found == [(fault.path, fault.message) for fault in expected]
    assert len(found) > 3


def test_rebuilds_a_model_that_cannot_be_imported_with_its_limits() -> None:
    """Given a model of this process alone, its document keeps names, defaults, limits and roles."""
    fields: dict[str, Any] = {
        "size": (int, Field(ge=1, le=9, json_schema_extra={"x-role": "title"})),
        "kind": (str | None, Field(default=None, max_length=3)),
    }
    model = create_model("Local", __base__=Request, **fields)
    capability = _hide_model(Registry.load().require("composition.layout"))
    object.__setattr__(capability, "input_model", model)
    (rebuilt,) = rebuild_capabilities(describe_capabilities([capability]))
    built = rebuilt.input_model
    assert built is not model
    assert built.model_json_schema() == model.model_json_schema()
    assert built.model_validate({"size": 3}, strict=True).model_dump() == {"size": 3, "kind": None}
    for wrong in ({}, {"size": 0}, {"size": "3"}, {"size": 3, "kind": "long"}):
        with pytest.raises(ValueError, match="validation error"):
            built.model_validate(wrong, strict=True)


def test_no_secret_is_in_a_planning_worker_s_arguments(view: PlannerView) -> None:
    """Given a view, what is written of it names capabilities and providers, and no environment."""
    written = steps.write_view(view)
    assert str(Path.home()) not in written
    assert "API_KEY" not in written
