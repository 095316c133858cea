"""Steps of planning and review have the same results in a worker process as in this process."""

from dataclasses import replace
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
    """The built-in capabilities, two of them with models that no other process can import."""
    registry = Registry.load()
    capabilities = [
        replace(capability, input_model=create_model("Hidden", __base__=capability.input_model))
        if capability.id in {"composition.layout", "image.generate"}
        else capability
        for capability in registry.list_newest()
    ]
    providers = {
        capability.id: frozenset(vendor.id for vendor in registry.find_vendors(capability))
        for capability in capabilities
    }
    return PlannerView(capabilities, frozenset({"openai"}), providers)


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
    """Given objectives, then a worker process makes the same plans as this process."""
    document = steps.write_view(view)
    free = Constraints(max_cost_usd=0)
    for objective in OBJECTIVES:
        for constraints in (Constraints(), free):
            draft = steps.plan_objective(objective, constraints.model_dump_json(), document)
            assert steps.DRAFT.validate_json(draft) == make_plan(objective, constraints, view)
    draft = call_in_process(steps.plan_objective, OBJECTIVES[1], "{}", document)
    assert steps.DRAFT.validate_json(draft) == make_plan(OBJECTIVES[1], Constraints(), view)


def test_finds_the_same_faults_in_a_worker_process(view: PlannerView) -> None:
    """Given a plan with faults, then the step finds the same faults as the validator."""
    capabilities = {capability.id: capability for capability in view.capabilities}
    rules = PlanRules(capabilities, allowed=frozenset({"speech.generate"}))
    draft = make_plan(OBJECTIVES[1], Constraints(), view)
    nodes = [node.model_copy(update={"input": {"width": 9_999}}) for node in draft.nodes]
    document = steps.NODES.dump_json(nodes)
    faults = steps.find_faults(document, ["none"], steps.write_rules(rules))
    expected = find_plan_faults(nodes, ["none"], rules)
    assert faults == [(fault.path, fault.message) for fault in expected]
    assert len(faults) > 3


def test_rebuilds_a_model_that_cannot_be_imported() -> None:
    """Given a local model, then the rebuilt model has its names, defaults, limits and roles."""
    fields: dict[str, Any] = {
        "size": (int, Field(ge=1, le=9, json_schema_extra={"x-role": "title"})),
        "kind": (str | None, Field(default=None, max_length=3)),
    }
    model = create_model("Local", __base__=Request, **fields)
    capability = replace(Registry.load().require("composition.layout"), input_model=model)
    (rebuilt,) = rebuild_capabilities(describe_capabilities([capability]))
    copy = rebuilt.input_model
    assert copy is not model
    assert copy.model_json_schema() == model.model_json_schema()
    assert copy.model_validate({"size": 3}, strict=True).model_dump() == {"size": 3, "kind": None}
    for values in ({}, {"size": 0}, {"size": "3"}, {"size": 3, "kind": "long"}):
        with pytest.raises(ValueError, match="validation error"):
            copy.model_validate(values, strict=True)


def test_arguments_of_a_worker_have_no_secret(view: PlannerView) -> None:
    """Given a view, then its document has no value of the environment."""
    document = steps.write_view(view)
    assert str(Path.home()) not in document
    assert "API_KEY" not in document
