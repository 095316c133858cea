"""The simulated model answers requests of the planner and the judge."""

import json
from typing import Any, TypeAlias

import jsonschema
import pytest

from tests.planning.sample_capabilities import build_view
from toolkit.capabilities import load_capabilities
from toolkit.planning.llm_planner import ModelRequest, build_planner_input
from toolkit.planning.model_reply import read_plan_reply
from toolkit.planning.plan_validator import PlanRules
from toolkit.planning.review.judge import JudgeBrief, JudgedText, build_judge_input
from toolkit.plugins.fencing import fence_text
from toolkit.sandbox.text.chat import ChatTurn, generate_reply

Json: TypeAlias = dict[str, Any]
CAPABILITIES = load_capabilities()
RULES = PlanRules({capability.id: capability for capability in CAPABILITIES})


def ask_model(request: Json) -> str:
    """Return the answer to an input of `llm.generate`."""
    rule, material = fence_text(request.get("context", ""))
    system, user = f"{request['system']}\n\n{rule}", f"{request['objective']}\n\n{material}"
    turns = [ChatTurn("system", system), ChatTurn("user", user)]
    return generate_reply(turns, schema=request["output_schema"]).text


@pytest.mark.parametrize(
    ("objective", "nodes", "deliverables"),
    [
        ("Write a poem about tea", ["text"], ["text"]),
        ("A picture of a mill", ["picture"], ["picture"]),
        ("Facts about glaciers, and a summary of them", ["facts", "text"], ["text"]),
        ("A social card about tea with a picture", ["picture", "text", "card"], ["card"]),
        ("A card about tea, and read it aloud", ["text", "speech", "card"], ["card", "speech"]),
    ],
)
def test_plans_an_objective(objective: str, nodes: list[str], deliverables: list[str]) -> None:
    """Given the planner's request, then the answer is a valid plan."""
    request: Json = build_planner_input(ModelRequest(objective, CAPABILITIES, frozenset()))
    answer = ask_model(request)

    plan = json.loads(answer)
    jsonschema.validate(plan, request["output_schema"])
    assert [node["id"] for node in plan["nodes"]] == nodes
    assert plan["deliverables"] == deliverables
    assert read_plan_reply(answer, objective, build_view(CAPABILITIES), RULES).faults == []


def test_asks_about_an_objective_without_a_topic() -> None:
    """Given an objective that names no topic, then the answer is a question."""
    request = build_planner_input(ModelRequest("Make it", CAPABILITIES, frozenset()))
    plan = json.loads(ask_model(request))
    assert plan["nodes"] == []
    assert plan["question"]


@pytest.mark.parametrize("member", ["issues", "findings"])
def test_finds_nothing_as_a_judge(member: str) -> None:
    """Given the judge's request, then the answer is an empty list of any name."""
    texts = [JudgedText("copy", "Write about tides", "Tides turn twice a day.")]
    request: Json = build_judge_input(JudgeBrief("Write about tides", texts))
    (items,) = request["output_schema"]["properties"].values()
    schema = {"type": "object", "properties": {member: items}, "required": [member]}

    answer = json.loads(ask_model({**request, "output_schema": schema}))

    jsonschema.validate(answer, schema)
    assert answer == {member: []}


NODE = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "maxLength": 40},
        "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
    },
    "required": ["text", "next"],
}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "number", "exclusiveMaximum": -6},
        {"type": "integer", "minimum": 3, "maximum": 3},
        {"type": "integer", "minimum": 4, "multipleOf": 5},
        {"type": "string", "minLength": 80, "maxLength": 90},
        {"type": "string", "enum": ["calm", "bold"]},
        {"anyOf": [{"type": "string", "format": "uri"}, {"type": "null"}]},
        {"type": "number", "minimum": 0, "maximum": 1},
        {"type": "boolean"},
        {"properties": {"tags": {"type": "array", "items": {"type": "string"}}}},
        {"type": "array", "items": {"type": "string"}, "minItems": 7, "maxItems": 7},
        {"allOf": [{"properties": {"a": {"type": "integer"}}}, {"required": ["a"]}]},
        {"$ref": "#/$defs/node", "$defs": {"node": NODE}},
    ],
)
def test_fills_any_schema(schema: Json) -> None:
    """Given bounds, or a recursive schema, then the answer is valid."""
    root = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
    root["$defs"] = schema.get("$defs", {})
    text = generate_reply([ChatTurn("user", "Five facts about tea")], schema=root).text
    jsonschema.validate(json.loads(text), root)


@pytest.mark.parametrize(("words", "items"), [("Five facts", 5), ("Seven names", 7), ("Facts", 3)])
def test_list_has_the_requested_number_of_items(words: str, items: int) -> None:
    """Given a number of items, then a list has this many."""
    schema = {"type": "object", "properties": {"list": {"type": "array"}}, "required": ["list"]}
    text = generate_reply([ChatTurn("user", f"{words} about tea")], schema=schema).text
    assert len(json.loads(text)["list"]) == items
