"""The plan validator: the faults of a plan and their places."""

import pytest

from tests.planning.sample_capabilities import BUILT_IN
from toolkit.contract.plans import PlanNode
from toolkit.planning.plan_validator import PlanRules, find_plan_faults

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
