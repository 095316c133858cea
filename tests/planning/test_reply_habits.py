"""Replies of models: read as plans, in any habit."""

import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import benchmarks
from tests.planning.sample_capabilities import BUILT_IN, build_view
from toolkit.capabilities import load_capabilities
from toolkit.contract.errors import Detail
from toolkit.planning.llm_planner import (
    FailedTry,
    ModelRequest,
    build_planner_input,
    build_reply_schema,
    list_plannable,
    load_examples,
)
from toolkit.planning.model_reply import ReadPlan, read_plan_reply
from toolkit.planning.plan_validator import PlanRules, find_plan_faults

SET = Path(benchmarks.__file__).parent / "sets" / "planning" / "replies.jsonl"

Json = dict[str, Any]

# Optional fields of inputs with their defaults, by capability.
OPTIONAL: dict[str, Json] = {
    "llm.generate": {"temperature": None, "output_schema": None, "system": ""},
    "image.generate": {"seed": None, "negative_prompt": ""},
    "speech.generate": {"voice": None},
    "composition.layout": {"subtitle": "", "bullets": [], "template": None},
}

FILLED = {"llm.generate": "context", "speech.generate": "text", "composition.layout": "body"}


def load_rows() -> list[Json]:
    """Load the recorded replies."""
    return [json.loads(line) for line in SET.read_text("utf-8").splitlines()]


@cache
def load_rules() -> PlanRules:
    """Load the rules of the catalogue."""
    capabilities = load_capabilities()
    return PlanRules({c.id: c for c in capabilities} | {c.name: c for c in capabilities})


@cache
def read(text: str, objective: str) -> ReadPlan:
    """Read a reply as the engine does."""
    return read_plan_reply(text, objective, build_view(load_capabilities()), load_rules())


def edit_inputs(edit: Callable[[Json, Json], Json | list[Json]]) -> Callable[[Json], str]:
    """Return a habit that edits the inputs of nodes."""

    def apply(reply: Json) -> str:
        nodes = [
            {**node, "input": edit(node, json.loads(node["input"]))} for node in reply["nodes"]
        ]
        return json.dumps({**reply, "nodes": nodes})

    return apply


def edit_quotes(edit: Callable[[str], str]) -> Callable[[Json], str]:
    """Return a habit that edits quotes."""

    def apply(reply: Json) -> str:
        parts = {
            name: [{**part, "quote": edit(part["quote"])} for part in reply[name]]
            for name in ("nodes", "missing")
        }
        return json.dumps({**reply, **parts})

    return apply


def fill_upstream(node: Json, fields: Json, mark: str | None) -> Json:
    """Write a mark into the field that an earlier node fills."""
    field = FILLED.get(node["capability"])
    if field is None or field in fields or not node["depends_on"]:
        return fields
    return {field: mark, **fields}


HABITS: dict[str, Callable[[Json], str]] = {
    "optional fields are null": edit_inputs(
        lambda node, fields: {**OPTIONAL.get(node["capability"], {}), **fields}
    ),
    "a filled field is empty": edit_inputs(lambda node, fields: fill_upstream(node, fields, "")),
    "a filled field is null": edit_inputs(lambda node, fields: fill_upstream(node, fields, None)),
    "a filled field is a mark": edit_inputs(
        lambda node, fields: fill_upstream(
            node, fields, "{{" + "".join(node["depends_on"][:1]) + ".text}}"
        )
    ),
    "numbers are text": edit_inputs(
        lambda _, fields: {
            name: str(value) if type(value) in (int, float) else value
            for name, value in fields.items()
        }
    ),
    "inputs are lists": edit_inputs(
        lambda _, fields: [{"field": name, "value": value} for name, value in fields.items()]
    ),
    "inputs are objects": edit_inputs(lambda _, fields: fields),
    "quotes are shortened": edit_quotes(lambda quote: f"{quote[:9]}… {quote[-9:]}"),
    "quotes are invented": edit_quotes(lambda _: "as was asked"),
    "quotes in NFD": edit_quotes(lambda quote: unicodedata.normalize("NFD", quote)),
    "no quotes": edit_quotes(lambda _: ""),
    "missing in camel case": lambda reply: json.dumps(
        {
            **reply,
            "missing": [
                {
                    **entry,
                    "capability": re.sub(r"[._](\w)", lambda m: m[1].upper(), entry["capability"]),
                }
                for entry in reply["missing"]
            ],
        }
    ),
    "only the main deliverable": lambda reply: json.dumps(
        {**reply, "deliverables": reply["deliverables"][:1]}
    ),
    "an extra key": lambda reply: json.dumps(
        {**reply, "notes": "Done.", "nodes": [{**node, "why": "asked"} for node in reply["nodes"]]}
    ),
    "a preamble with braces": lambda reply: (
        '<think>A {plan} of {\'nodes\': …}? Like {"id": "a"}.</think>\nHere it is:\n```json\n'
        + json.dumps(reply, indent=1)
        + "\n```\nSay if {anything} is unclear."
    ),
    "a draft before it": lambda reply: (
        json.dumps({"nodes": [], "question": "?"}) + json.dumps(reply)
    ),
    "no question": lambda reply: json.dumps({**reply, "question": reply["question"] or None}),
    "the question none": lambda reply: json.dumps(
        {**reply, "question": reply["question"] or "None."}
    ),
}


def summarize(plan: ReadPlan) -> list[object]:
    """Return the parts of a plan that decide which nodes run."""
    draft = plan.draft
    nodes = [(node.id, node.capability, node.input, node.depends_on) for node in draft.nodes]
    return [plan.faults, nodes, bool(draft.question), len(draft.missing)]


@pytest.mark.parametrize("habit", HABITS)
def test_a_habit_changes_no_plan(habit: str) -> None:
    """Given the recorded replies in a habit, then each makes the same plan as before."""
    for row in load_rows():
        plain = read(row["reply"], row["objective"])
        assert plain.faults == []
        edited = read(HABITS[habit](json.loads(row["reply"])), row["objective"])
        assert summarize(edited) == summarize(plain), row["id"]
        if habit != "only the main deliverable":  # each last node is a deliverable by default
            assert edited.draft.deliverables == plain.draft.deliverables


def test_words_without_a_quote_are_not_understood() -> None:
    """Given invented quotes, then a smaller share of the objective is understood."""
    row = next(row for row in load_rows() if json.loads(row["reply"])["nodes"])
    reply = HABITS["quotes are invented"](json.loads(row["reply"]))
    assert (
        read(reply, row["objective"]).draft.reading.understood
        < read(row["reply"], row["objective"]).draft.reading.understood
    )


OBJECTIVE = "A poem about tea on a card"

RULES = PlanRules({c.id: c for c in BUILT_IN} | {c.name: c for c in BUILT_IN})

NODE = {"id": "a", "capability": "llm.generate", "input": '{"objective": "x"}', "quote": "tea"}

POOL = [
    {"id": "facts", "capability": "research.gather", "input": '{"topic": "tea"}'},
    NODE | {"depends_on": ["facts"]},
    NODE | {"id": "b"},
    {"id": "card", "capability": "composition.layout", "input": {"title": "Tea"},
     "depends_on": ["a"]},
    {"id": "voice", "capability": "speech.generate", "input": "{}", "depends_on": ["b"]},
]  # fmt: skip

LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20),
    st.sampled_from(["a", "llm.generate", "speech.generate", "tea", "[", '{"text": "tea"}']),
)  # fmt: skip

NAMES = st.one_of(
    st.sampled_from(
        ["nodes", "deliverables", "missing", "question", *NODE, "depends_on", "provider"]
    ),
    st.text(max_size=8),
)

VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5)
)

SOUND_OR_NEARLY = st.builds(
    lambda nodes, deliver, at, spoiled: json.dumps(
        {
            "nodes": [
                {"quote": "tea", **node, **(spoiled if i == at else {})}
                for i, node in enumerate(nodes)
            ],
            "deliverables": deliver,
        }
    ),
    st.lists(st.sampled_from(POOL), unique_by=lambda node: node["id"], min_size=1),
    st.lists(st.sampled_from(["card", "voice", "a", "b"]), unique=True, max_size=4),
    st.integers(min_value=0, max_value=9),
    st.dictionaries(NAMES, VALUES, max_size=1),
)

TEXTS = st.one_of(
    SOUND_OR_NEARLY,
    st.text(max_size=300),
    VALUES.map(json.dumps),
    st.integers(min_value=1, max_value=5_000).map(lambda n: '{"nodes":' + "[" * n),
)


@settings(max_examples=300)
@given(TEXTS)
def test_any_reply_is_a_sound_plan_or_has_faults(text: str) -> None:
    """Given any text, then it is read without an exception, and its plan is valid or has faults."""
    read = read_plan_reply(text, OBJECTIVE, build_view(), RULES)
    if read.faults:
        assert not read.draft.nodes
        return
    assert read.draft.nodes or read.draft.missing_capabilities or read.draft.question
    if read.draft.nodes:
        assert find_plan_faults(read.draft.nodes, read.draft.deliverables, RULES) == []


def test_finds_the_faults_of_all_nodes() -> None:
    """Given a reply with an invalid node, then the faults of other nodes are found, too."""
    nodes = [
        {**NODE, "input": 3},
        {**NODE, "id": "b", "capability": "x.y"},
        {**NODE, "id": "c", "quote": "coffee", "depends_on": ["ghost"]},
    ]
    reply = json.dumps({"nodes": nodes, "deliverables": ["a", "b", "c"]})
    paths = [fault.path for fault in read_plan_reply(reply, OBJECTIVE, build_view(), RULES).faults]
    assert set(paths) == {
        "nodes.0.input", "nodes.1.capability", "nodes.2.depends_on.0",
    }  # fmt: skip


def test_the_longest_prompt_is_a_valid_input() -> None:
    """Given all capabilities and the longest faults, then the prompt is a valid input."""
    capabilities = load_capabilities()
    llm = next(c for c in capabilities if c.id == "llm.generate")
    failed = [FailedTry("tea " * 50_000, [Detail("p" * 300, "m" * 900)] * 60)]
    fields = build_planner_input(ModelRequest("o" * 10_000, capabilities, frozenset()), failed)
    llm.input_model.model_validate(fields, strict=True)
    offered = [c.id for c in list_plannable(capabilities)]
    assert all(f'"id": "{capability_id}"' in str(fields["system"]) for capability_id in offered)
    assert "text.generate" not in offered


def test_equal_requests_have_equal_prompts() -> None:
    """Given equal requests, then the prompts are equal, so that a crash repeats no call."""
    request = ModelRequest(OBJECTIVE, BUILT_IN, frozenset({"llm.generate"}))
    assert build_planner_input(request) == build_planner_input(request)


def test_a_prompt_describes_as_many_plugins_as_fit() -> None:
    """Given hundreds of capabilities, then the prompt is valid and describes some of them."""
    capabilities = load_capabilities()
    llm = next(c for c in capabilities if c.id == "llm.generate")
    many = [*capabilities, *(replace(llm, id=f"plugin.make{i}") for i in range(300))]
    fields = build_planner_input(ModelRequest(OBJECTIVE, many, frozenset()))
    llm.input_model.model_validate(fields, strict=True)
    prompt, plannable = str(fields["system"]), list_plannable(many)
    described = [capability for capability in plannable if f'"id": "{capability.id}"' in prompt]
    assert described[0].id == plannable[0].id
    assert len(described) > len(capabilities)
    assert build_reply_schema(described) == fields["output_schema"]


@pytest.mark.parametrize("example", load_examples(), ids=lambda example: example["objective"][:20])
def test_each_example_of_the_prompt_is_valid(example: dict[str, Any]) -> None:
    """Given an example, then it matches the schema, has no fault, and quotes the objective."""
    capabilities = load_capabilities()
    fields = build_planner_input(ModelRequest("Tea", capabilities, frozenset()))
    jsonschema.validate(example["plan"], fields["output_schema"])
    rules = PlanRules({c.id: c for c in capabilities})
    read = read_plan_reply(
        json.dumps(example["plan"]), example["objective"], build_view(capabilities), rules
    )
    assert read.faults == []
    quotes = [entry["quote"] for entry in (*example["plan"]["nodes"], *example["plan"]["missing"])]
    assert all(quote in example["objective"] for quote in quotes)
