"""Replies of a model in the habits that real models have: none of them changes the plan.

The replies were recorded, one try each, and are judged against the catalogue of that day: the
seven built-in capabilities. A habit is applied to each of them.
"""

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
# What a node's input has beside what it needs, as a model leaves fields out.
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


def read(text: str, objective: str) -> ReadPlan:
    """Read a reply as the engine does."""
    return read_plan_reply(text, objective, build_view(load_capabilities()), load_rules())


def edit_inputs(edit: Callable[[Json, Json], Json | list[Json]]) -> Callable[[Json], str]:
    """Make a habit of how inputs are written: of a node and its input comes another input."""

    def apply(reply: Json) -> str:
        nodes = [
            {**node, "input": edit(node, json.loads(node["input"]))} for node in reply["nodes"]
        ]
        return json.dumps({**reply, "nodes": nodes})

    return apply


def edit_quotes(edit: Callable[[str], str]) -> Callable[[Json], str]:
    """Make a habit of how quotes are copied."""

    def apply(reply: Json) -> str:
        parts = {
            name: [{**one, "quote": edit(one["quote"])} for one in reply[name]]
            for name in ("nodes", "missing")
        }
        return json.dumps({**reply, **parts})

    return apply


def fill_upstream(node: Json, given: Json, mark: str | None) -> Json:
    """Write something into the field that a node before this one fills."""
    field = FILLED.get(node["capability"])
    return {**given, field: mark} if field and node["depends_on"] and field not in given else given


def write_as_list(_: Json, given: Json) -> list[Json]:
    """Write an input as the schema of strict modes has it."""
    return [{"field": name, "value": value} for name, value in given.items()]


HABITS: dict[str, Callable[[Json], str]] = {
    "optional fields are null": edit_inputs(
        lambda node, given: {**OPTIONAL.get(node["capability"], {}), **given}
    ),
    "a filled field is empty": edit_inputs(lambda node, given: fill_upstream(node, given, "")),
    "a filled field is null": edit_inputs(lambda node, given: fill_upstream(node, given, None)),
    "a filled field is a mark": edit_inputs(
        lambda node, given: (
            fill_upstream(node, given, "{{" + node["depends_on"][0] + ".text}}")
            if node["depends_on"]
            else given
        )
    ),
    "numbers are text": edit_inputs(
        lambda _, given: {
            name: str(value) if type(value) in (int, float) else value
            for name, value in given.items()
        }
    ),
    "inputs are lists": edit_inputs(write_as_list),
    "inputs are objects": edit_inputs(lambda _, given: given),
    "quotes in marks": edit_quotes(lambda quote: f"“{quote}”"),
    "quotes with a full stop": edit_quotes(lambda quote: f"{quote}."),
    "quotes without commas": edit_quotes(lambda quote: re.sub(r"[,;:]", "", quote)),
    "quotes are shortened": edit_quotes(lambda quote: f"{quote[:9]}… {quote[-9:]}"),
    "quotes are invented": edit_quotes(lambda _: "as was asked"),
    "quotes in NFD": edit_quotes(lambda quote: unicodedata.normalize("NFD", quote)),
    "no quotes": edit_quotes(lambda _: ""),
    "missing in camel case": lambda reply: json.dumps(
        {
            **reply,
            "missing": [
                {
                    **one,
                    "capability": re.sub(r"[._](\w)", lambda m: m[1].upper(), one["capability"]),
                }
                for one in reply["missing"]
            ],
        }
    ),
    "only the main deliverable": lambda reply: json.dumps(
        {**reply, "deliverables": reply["deliverables"][:1]}
    ),
    "an extra key": lambda reply: json.dumps(
        {**reply, "notes": "Done.", "nodes": [{**one, "why": "asked"} for one in reply["nodes"]]}
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


@pytest.mark.parametrize("habit", HABITS)
def test_a_habit_changes_no_plan(habit: str) -> None:
    """Given the recorded replies in a habit, then each is read at the first try, as before."""
    for row in load_rows():
        plain = read(row["reply"], row["objective"])
        assert plain.faults == []
        other = read(HABITS[habit](json.loads(row["reply"])), row["objective"])
        assert other.faults == [], row["id"]
        told = [
            [(n.id, n.capability, n.input, n.depends_on) for n in one.draft.nodes]
            for one in (plain, other)
        ]
        assert told[0] == told[1], row["id"]
        assert bool(plain.draft.question) == bool(other.draft.question)
        assert len(plain.draft.missing) == len(other.draft.missing)
        if habit != "only the main deliverable":  # without the name, each last node delivers
            assert plain.draft.deliverables == other.draft.deliverables


def test_a_courtesy_question_is_a_note() -> None:
    """Given a question beside each complete plan, then every plan runs, and tells the question."""
    for row in load_rows():
        reply = json.loads(row["reply"])
        if reply["nodes"]:
            asked = read(json.dumps({**reply, "question": "Shall I go on?"}), row["objective"])
            assert asked.draft.question is None
            assert "Shall I go on?" in asked.draft.rationale


def test_quotes_are_advice() -> None:
    """Given quotes of the objective, then words of the rest are told as not understood."""
    row = next(one for one in load_rows() if json.loads(one["reply"])["nodes"])
    reply = json.loads(row["reply"])
    for node in reply["nodes"]:
        node["quote"] = "never said"
    assert (
        read(json.dumps(reply), row["objective"]).draft.reading.understood
        < read(row["reply"], row["objective"]).draft.reading.understood
    )
