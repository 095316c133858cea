"""The table of capabilities: order, schemas, hints for the planner, entry points."""

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
each = pytest.mark.parametrize("capability", ALL.values(), ids=list(ALL))

MINIMAL: dict[str, dict[str, object]] = {
    "image.generate": {"prompt": "a tide mill", "steps": 4},
    "research.gather": {"topic": "Tidal power"},
    "composition.layout": {"title": "Tidal power"},
    "llm.generate": {"objective": "One line on tidal power"},
    "text.generate": {"objective": "A 20-word teaser"},
    "speech.generate": {"text": "Tides turn."},
    "voice.clone": {"reference_audio": "art_" + "0" * 26, "name": "Narrator"},
}


def build_minimal_input(capability: Capability) -> dict[str, object]:
    """The shortest input: as written above, or made from the schema of one that is not there."""
    if capability.id in MINIMAL:
        return MINIMAL[capability.id]
    schema = capability.input_model.model_json_schema()
    return {name: example_of(schema["properties"][name]) for name in schema.get("required", ())}


def example_of(field: dict[str, Any]) -> object:
    """A value that a field takes."""
    for known in ("default", "const"):
        if known in field:
            return field[known]
    if choices := field.get("enum") or field.get("examples"):
        return choices[0]
    if field.get("pattern", "").startswith("^art_"):
        return "art_" + "0" * 26
    if field.get("type") == "array":
        return [example_of(field["items"])] * field.get("minItems", 0)
    smallest = field.get("minimum", 1)
    short = "x" * max(1, field.get("minLength", 0))
    made: dict[str, object] = {"string": short, "integer": smallest, "number": float(smallest)}
    return made.get(field.get("type", ""), {})


def test_registry_order() -> None:
    """Given the built-in modules, then the table comes first, and others by their names."""
    assert BUILT_IN[: len(TABLE)] == TABLE
    assert BUILT_IN[len(TABLE) :] == sorted(BUILT_IN[len(TABLE) :])


@each
def test_schemas_are_valid_and_described(capability: Capability) -> None:
    """Given a capability, both its schemas are valid JSON schema and describe every field."""
    for model in (capability.input_model, capability.output_model):
        schema = model.model_json_schema()
        Draft202012Validator.check_schema(schema)
        parts = [schema, *schema.get("$defs", {}).values()]
        for part in parts:
            for name, field in part.get("properties", {}).items():
                assert field.get("description"), f"{model.__name__}.{name}"


@each
def test_minimal_input_and_estimate(capability: Capability) -> None:
    """Given the shortest input, it is taken and its estimate is of the capability's operation."""
    value = capability.input_model.model_validate(build_minimal_input(capability), strict=True)
    operation = capability.estimate(value)
    if capability.operation is None:
        assert operation is None
    else:
        assert isinstance(operation, capability.operation)
        assert all(amount > 0 for amount in operation.units().values())


@each
def test_strings_are_bounded(capability: Capability) -> None:
    """Given a capability, no string of its input may be of any length."""
    schema = capability.input_model.model_json_schema()
    for name, field in schema["properties"].items():
        for part in [field, field.get("items", {}), *field.get("anyOf", [])]:
            if part.get("type") == "string" and "enum" not in part and "const" not in part:
                assert "maxLength" in part or part.get("pattern", "").endswith("}$"), name


@each
def test_takes_name_fields(capability: Capability) -> None:
    """Given what upstream may fill, each is a field of the input."""
    assert set(capability.accepts) <= set(capability.input_model.model_fields)
    assert capability.keywords


@pytest.mark.parametrize(
    ("capability_id", "field", "role"),
    [
        ("image.generate", "prompt", "prompt"),
        ("research.gather", "topic", "topic"),
        ("composition.layout", "title", "title"),
        ("llm.generate", "objective", "objective"),
        ("text.generate", "objective", "objective"),
        ("speech.generate", "text", "text"),
    ],
)
def test_roles(capability_id: str, field: str, role: str) -> None:
    """Given a capability, the planner finds the field that the objective fills by its role."""
    schema = ALL[capability_id].input_model.model_json_schema()
    assert schema["properties"][field]["x-role"] == role


@pytest.mark.parametrize(
    ("capability_id", "change"),
    [
        ("llm.generate", {"objective": ""}),
        ("llm.generate", {"objective": " \n\t"}),
        ("llm.generate", {"objective": "x" * 20_001}),
        ("llm.generate", {"objective": 3}),
        ("llm.generate", {"max_tokens": "3"}),
        ("llm.generate", {"max_tokens": True}),
        ("llm.generate", {"max_tokens": 2.0}),
        ("llm.generate", {"max_tokens": 0}),
        ("llm.generate", {"temperature": float("nan")}),
        ("llm.generate", {"temperature": 2.1}),
        ("llm.generate", {"model": "some-model"}),
        ("llm.generate", {"output_schema": {"type": "strng"}}),
        ("speech.generate", {"text": "x" * 10_000}),
        ("speech.generate", {"speed": 0.4}),
        ("speech.generate", {"speed": float("inf")}),
        ("image.generate", {"steps": 0}),
        ("image.generate", {"steps": 51}),
        ("image.generate", {"width": 1000.0}),
        ("image.generate", {"width": 1001}),
        ("image.generate", {"height": 1544}),
        ("image.generate", {"seed": -1}),
        ("research.gather", {"topic": " "}),
        ("research.gather", {"max_sources": 6}),
        ("research.gather", {"language": "en.evil.example/"}),
        ("composition.layout", {"width": 199}),
        ("composition.layout", {"theme": "no such"}),
        ("composition.layout", {"image": "../../etc/passwd"}),
        ("composition.layout", {"bullets": ["x"] * 9}),
        ("voice.clone", {"reference_audio": "art_1"}),
        ("voice.clone", {"name": ""}),
    ],
)
def test_refused_inputs(capability_id: str, change: dict[str, object]) -> None:
    """Given one field out of its range, type or name, the input is refused."""
    with pytest.raises(ValidationError):
        ALL[capability_id].input_model.model_validate(MINIMAL[capability_id] | change, strict=True)


def test_alias() -> None:
    """Given text.generate, it is llm.generate under another id."""
    alias = replace(
        ALL["text.generate"],
        id="llm.generate",
        alias_of=None,
        title=ALL["llm.generate"].title,
        description=ALL["llm.generate"].description,
    )
    assert alias == ALL["llm.generate"]
    assert ALL["text.generate"].alias_of == "llm.generate"


def test_connections_needed() -> None:
    """Given the table, only research and layout run without a connection."""
    in_table = {name.partition("@")[0]: ALL[name.partition("@")[0]] for name in TABLE}
    free = {name for name, capability in in_table.items() if not capability.needs_connection}
    assert free == {"research.gather", "composition.layout"}
    assert ALL["research.gather"].operation is TextRequest


class Point:
    """An entry point that loads what it was made with."""

    def __init__(self, name: str, value: object) -> None:
        self.name = name
        self._value = value

    def load(self) -> object:
        """Give the value, or fail with it."""
        if isinstance(self._value, Exception):
            raise self._value
        return self._value


def test_installed_capabilities(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Given entry points, good ones come after the built-in ones and bad ones are logged."""
    extra = replace(ALL["llm.generate"], id="translate.text")
    newer = replace(ALL["llm.generate"], version="2")
    points = [
        Point("d-taken", ALL["llm.generate"]),
        Point("c-newer", newer),
        Point("b-broken", RuntimeError("sk_live_secret")),
        Point("a-no-capability", object()),
        Point("e-extra", extra),
    ]
    monkeypatch.setattr(capabilities, "entry_points", lambda *, group: points)
    with caplog.at_level(logging.WARNING):
        names = [capability.name for capability in load_capabilities()]
    assert names == [*BUILT_IN, "llm.generate@2", "translate.text@1"]
    assert [record.getMessage() for record in caplog.records] == [
        "entry point a-no-capability: it is not a toolkit.plugins.Capability",
        "entry point b-broken: failed to load with RuntimeError",
        "entry point d-taken: another capability has the name llm.generate@1",
    ]


def test_entry_point_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a real entry point of the group, what it names is loaded."""
    point = EntryPoint("again", "toolkit.capabilities.text_generate:CAPABILITY", capabilities.GROUP)
    found: list[str] = []

    def entry_points(*, group: str) -> list[EntryPoint]:
        found.append(group)
        return [point]

    monkeypatch.setattr(capabilities, "entry_points", entry_points)
    assert [capability.name for capability in load_capabilities()] == BUILT_IN
    assert found == ["toolkit.capabilities"]
