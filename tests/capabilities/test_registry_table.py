"""The table of capabilities: order, schemas, roles of fields, and entry points."""

import logging
from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

import toolkit.capabilities as capabilities
from toolkit.capabilities import load_capabilities
from toolkit.plugins import Capability, TextRequest

TABLE = [
    "image.generate@1",
    "research.gather@1",
    "composition.layout@1",
    "llm.generate@1",
    "text.generate@1",
    "speech.generate@1",
    "voice.clone@1",
]
LOADED = load_capabilities()
ALL = {capability.id: capability for capability in LOADED}
BUILT_IN = [capability.name for capability in LOADED]
each_capability = pytest.mark.parametrize("capability", ALL.values(), ids=list(ALL))


def build_minimal_input(capability: Capability) -> dict[str, object]:
    """Build the shortest input from the schema: its required fields alone."""
    schema = capability.input_model.model_json_schema()
    either = schema.get("anyOf") or schema.get("oneOf") or [{}]
    required = [*schema.get("required", ()), *either[0].get("required", ())]
    return {name: build_example(schema["properties"][name]) for name in required}


def build_example(field: dict[str, Any]) -> object:
    """Return a value that a field accepts."""
    if "const" in field:
        return field["const"]
    if choices := field.get("enum") or field.get("examples"):
        return choices[0]
    if field.get("pattern", "").startswith("^art_"):
        return "art_" + "0" * 26
    if field.get("type") == "array":
        return [build_example(field["items"])]
    smallest = field.get("minimum", 1)
    text = "x" * max(1, field.get("minLength", 0))
    examples: dict[str, object] = {"string": text, "integer": smallest, "number": float(smallest)}
    return examples.get(field.get("type", ""), {})


def test_table_comes_first() -> None:
    """Given the modules, then those of the table come first, and others follow by name."""
    assert BUILT_IN[: len(TABLE)] == TABLE
    assert BUILT_IN[len(TABLE) :] == sorted(BUILT_IN[len(TABLE) :])


@each_capability
def test_schemas_are_valid_and_described(capability: Capability) -> None:
    """Given a capability, then its schemas are valid JSON Schema and describe every field."""
    for model in (capability.input_model, capability.output_model):
        schema = model.model_json_schema()
        Draft202012Validator.check_schema(schema)
        parts = [schema, *schema.get("$defs", {}).values()]
        for part in parts:
            for name, field in part.get("properties", {}).items():
                assert field.get("description"), f"{model.__name__}.{name}"


@each_capability
def test_accepts_the_minimal_input(capability: Capability) -> None:
    """Given the shortest input, then it is valid, and its estimate has the declared operation."""
    value = capability.input_model.model_validate(build_minimal_input(capability), strict=True)
    operation = capability.estimate(value)
    if capability.operation is None:
        assert operation is None
    else:
        assert isinstance(operation, capability.operation)
        assert all(amount > 0 for amount in operation.units().values())


@each_capability
def test_strings_are_bounded(capability: Capability) -> None:
    """Given a capability, then every string of its input has a maximum length."""
    schema = capability.input_model.model_json_schema()
    for name, field in schema["properties"].items():
        for part in [field, field.get("items", {}), *field.get("anyOf", [])]:
            if part.get("type") == "string" and "enum" not in part and "const" not in part:
                assert "maxLength" in part or part.get("pattern", "").endswith("}$"), name


@each_capability
def test_upstream_fills_only_known_fields(capability: Capability) -> None:
    """Given the names that upstream may fill, then each is a field of the input."""
    assert set(capability.accepts) <= set(capability.input_model.model_fields)
    assert capability.keywords


@pytest.mark.parametrize(
    ("capability_id", "role"),
    [
        ("image.generate", "prompt"),
        ("research.gather", "topic"),
        ("composition.layout", "title"),
        ("llm.generate", "objective"),
        ("speech.generate", "text"),
    ],
)
def test_fields_have_roles(capability_id: str, role: str) -> None:
    """Given a capability, then the planner finds the objective's field by its role."""
    schema = ALL[capability_id].input_model.model_json_schema()
    assert schema["properties"][role]["x-role"] == role


@pytest.mark.parametrize(
    ("capability_id", "change"),
    [
        ("llm.generate", {"objective": " \n\t"}),
        ("llm.generate", {"objective": "x" * 20_001}),
        ("llm.generate", {"objective": 3}),
        ("llm.generate", {"max_tokens": True}),
        ("llm.generate", {"max_tokens": 0}),
        ("llm.generate", {"temperature": float("nan")}),
        ("llm.generate", {"temperature": 2.1}),
        ("llm.generate", {"model": "some-model"}),
        ("llm.generate", {"output_schema": {"type": "strng"}}),
        ("speech.generate", {"text": "x" * 10_000}),
        ("speech.generate", {"speed": 0.4}),
        ("image.generate", {"steps": 0}),
        ("image.generate", {"steps": 51}),
        ("image.generate", {"width": 1001}),
        ("image.generate", {"height": 1544}),
        ("image.generate", {"seed": -1}),
        ("research.gather", {"max_sources": 6}),
        ("research.gather", {"language": "en.evil.example/"}),
        ("composition.layout", {"width": 199}),
        ("composition.layout", {"theme": "no such"}),
        ("composition.layout", {"image": "../../etc/passwd"}),
        ("composition.layout", {"bullets": ["x"] * 9}),
        ("voice.clone", {"name": ""}),
    ],
)
def test_rejects_an_invalid_input(capability_id: str, change: dict[str, object]) -> None:
    """Given a field out of range, of a wrong type or unknown, then the input is invalid."""
    capability = ALL[capability_id]
    fields = build_minimal_input(capability) | change
    with pytest.raises(ValidationError):
        capability.input_model.model_validate(fields, strict=True)


def test_text_generate_is_an_alias() -> None:
    """Given text.generate, then it equals llm.generate apart from its id and texts."""
    model, alias = ALL["llm.generate"], ALL["text.generate"]
    assert alias.alias_of == model.id
    expected = replace(model, id=alias.id, alias_of=model.id)
    assert replace(expected, title=alias.title, description=alias.description) == alias


def test_only_research_and_layout_need_no_connection() -> None:
    """Given the table, then only research and layout run without a connection."""
    table = [ALL[name.partition("@")[0]] for name in TABLE]
    free = {capability.id for capability in table if not capability.needs_connection}
    assert free == {"research.gather", "composition.layout"}
    assert ALL["research.gather"].operation is TextRequest


TAKEN = ALL["llm.generate"]
NEWER = replace(TAKEN, version="2")
EXTRA = replace(TAKEN, id="translate.text")


def test_loads_installed_capabilities(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Given entry points, then valid capabilities follow the built-in ones; the rest is logged."""
    targets = {
        "d-taken": "TAKEN",
        "c-newer": "NEWER",
        "b-broken": "NOTHING",
        "a-no-capability": "TABLE",
        "e-extra": "EXTRA",
    }
    groups: list[str] = []

    def entry_points(*, group: str) -> list[EntryPoint]:
        groups.append(group)
        return [EntryPoint(name, f"{__name__}:{value}", group) for name, value in targets.items()]

    monkeypatch.setattr(capabilities, "entry_points", entry_points)
    with caplog.at_level(logging.WARNING):
        names = [capability.name for capability in load_capabilities()]
    assert groups == ["toolkit.capabilities"]
    assert names == [*BUILT_IN, "llm.generate@2", "translate.text@1"]
    assert [record.getMessage() for record in caplog.records] == [
        "entry point a-no-capability: it is not a toolkit.plugins.Capability",
        "entry point b-broken: failed to load with AttributeError",
        "entry point d-taken: another capability has the name llm.generate@1",
    ]
