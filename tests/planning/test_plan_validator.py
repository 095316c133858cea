"""Plans: their validator, and their steps in worker processes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field, create_model

from tests.planning.sample_capabilities import BUILT_IN
from toolkit.contract.base import Request
from toolkit.contract.plans import Constraints, PlanNode
from toolkit.engine import Registry
from toolkit.planning import steps
from toolkit.planning.capability_documents import describe_capabilities, rebuild_capabilities
from toolkit.planning.keywords.planner import make_plan
from toolkit.planning.plan_draft import PlannerView
from toolkit.planning.plan_validator import PlanRules, find_plan_faults
from toolkit.workers.process import WorkerProcess

CAPABILITIES = {c.id: c for c in BUILT_IN} | {c.name: c for c in BUILT_IN}

RULES = PlanRules(CAPABILITIES)

FACTS = PlanNode(id="facts", capability="research.gather", input={"topic": "tides"})

COPY = PlanNode(
    id="copy", capability="llm.generate@1", input={"objective": "on tides"}, depends_on=["facts"]
)

CARD = PlanNode(
    id="card", capability="composition.layout", input={"title": "Tides"}, depends_on=["copy"]
)

SPOKEN = PlanNode(id="voice", capability="speech.generate", depends_on=["copy"])


def change(node: PlanNode, **fields: object) -> PlanNode:
    """Return a node with some fields changed."""
    return node.model_copy(update=fields)


def test_a_valid_plan_has_no_fault() -> None:
    """Given a plan whose edges and nodes are all used, then it has no fault."""
    assert find_plan_faults([FACTS, COPY, CARD, SPOKEN], ["card", "voice"], RULES) == []


FAULTS = [
    ("unknown", [change(COPY, capability="video.generate", depends_on=[])],
     "nodes.0.capability", "`video.generate` is no capability here"),
    ("version", [change(COPY, capability="llm.generate@0", depends_on=[])],
     "nodes.0.capability", "`llm.generate` has no version `0`; its newest is `1`"),
    ("empty id", [change(COPY, id="", depends_on=[])],
     "nodes.0.id", "an id has 1 to 255 characters"),
    ("long id", [change(COPY, id="n" * 256, depends_on=[])],
     "nodes.0.id", "an id has 1 to 255 characters"),
    ("same id", [FACTS, FACTS, COPY], "nodes.1.id", "`facts` is the id of an earlier node"),
    ("self", [change(COPY, depends_on=["copy"])],
     "nodes.0.depends_on.0", "`copy` depends on itself"),
    ("unknown node", [COPY], "nodes.0.depends_on.0", "`copy` depends on an unknown node"),
    ("cycle", [change(COPY, depends_on=["other"]), change(COPY, id="other", depends_on=["copy"])],
     "nodes.0.depends_on", "a cycle: "),
    ("type", [FACTS, change(SPOKEN, depends_on=["facts"], input={"text": "x"})],
     "nodes.1.depends_on.0", "`facts` makes application/json, which no field of"),
    ("input", [FACTS, COPY, change(CARD, input={"title": "Tides", "width": 1})],
     "nodes.2.input.width", "Input should be greater than or equal to 200"),
    ("no input", [change(COPY, depends_on=[], input={})],
     "nodes.0.input.objective", "Field required"),
    ("optional alone", [change(FACTS, id="copy", optional=True), change(SPOKEN)],
     "nodes.1.input.text", "Field required"),
    ("given already", [FACTS, change(COPY, input={"objective": "x", "context": "y"})],
     "nodes.1.depends_on.0", "`facts` feeds nothing: `context` of `copy` is given already"),
    ("idle node", [FACTS, change(COPY, id="spare"), COPY],
     "nodes.1", "`spare` delivers nothing"),
    ("size", [change(COPY, id=f"n{i}", depends_on=[]) for i in range(60)],
     "nodes", "60 nodes, and a plan has at most 50"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("nodes", "path", "reason"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS]
)
def test_a_fault_has_its_place_and_a_sentence(
    nodes: list[PlanNode], path: str, reason: str
) -> None:
    """Given a plan with a fault, then the validator reports its place and reason."""
    faults = find_plan_faults(nodes, [nodes[-1].id], RULES)
    assert [fault for fault in faults if fault.path == path and fault.message.startswith(reason)]


def test_finds_all_faults_at_once() -> None:
    """Given a plan with many faults, then all of them are reported."""
    nodes = [
        change(FACTS, capability="web.search"),
        change(COPY, input={"objective": 3}),
        change(CARD, depends_on=["copy", "ghost"]),
        change(CARD, id="spare"),
    ]
    faults = find_plan_faults(nodes, ["card", "poster"], RULES)
    assert [fault.path for fault in faults] == [
        "nodes.0.capability",
        "nodes.2.depends_on.1",
        "nodes.1.input.objective",
        "deliverables.1",
        "nodes.3",
    ]


def test_rejects_a_capability_outside_the_constraints() -> None:
    """Given constraints without a capability, then a node of this capability is a fault."""
    rules = PlanRules(CAPABILITIES, allowed=frozenset({"llm.generate"}))
    nodes = [change(COPY, depends_on=[]), CARD]
    assert [fault.message for fault in find_plan_faults(nodes, ["card"], rules)] == [
        "`composition.layout` is not among the capabilities that the constraints allow"
    ]


def test_rejects_two_pictures_for_a_field() -> None:
    """Given two upstream artifacts for the same field, then the first artifact is a fault."""
    pictures = [
        PlanNode(id=name, capability="image.generate", input={"prompt": "a tide"})
        for name in ("first", "second")
    ]
    card = change(CARD, depends_on=["first", "second"])
    (fault,) = find_plan_faults([*pictures, card], ["card"], RULES)
    assert (fault.path, fault.message) == (
        "nodes.2.depends_on.0",
        "`first` feeds nothing: `image` of `card` is filled by a later node",
    )


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
