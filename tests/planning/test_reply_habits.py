"""Recorded replies of models, rewritten in the habits of other models, make the same plans."""

import json
import re
import unicodedata
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import benchmarks
from tests.planning.sample_capabilities import build_view
from toolkit.capabilities import load_capabilities
from toolkit.planning.model_reply import ReadPlan, read_plan_reply
from toolkit.planning.plan_validator import PlanRules

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


def test_a_courtesy_question_is_a_note() -> None:
    """Given a complete plan with a question, then the question is only a note in the plan."""
    for row in load_rows():
        reply = json.loads(row["reply"])
        if reply["nodes"]:
            result = read(json.dumps({**reply, "question": "Shall I go on?"}), row["objective"])
            assert result.draft.question is None
            assert "Shall I go on?" in result.draft.rationale


def test_words_without_a_quote_are_not_understood() -> None:
    """Given invented quotes, then a smaller share of the objective is understood."""
    row = next(row for row in load_rows() if json.loads(row["reply"])["nodes"])
    reply = HABITS["quotes are invented"](json.loads(row["reply"]))
    assert (
        read(reply, row["objective"]).draft.reading.understood
        < read(row["reply"], row["objective"]).draft.reading.understood
    )
