"""Schemas that answers are held to: what is taken, what a check comes to, and how long it takes."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from toolkit.capabilities import _schema_check
from toolkit.capabilities._schema import read_bounded_schema
from toolkit.capabilities._schema_check import find_fault, is_cheap, read_answer

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 0.5, 1.0, 2.0])
NAMES = st.sampled_from(["a", "b", "c", ""])
VALUES = st.recursive(
    SCALARS | NAMES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
TYPES = st.sampled_from(["array", "boolean", "integer", "null", "number", "object", "string"])
COUNTS = st.integers(0, 3) | st.just(2.0)
LIMITS = st.integers(-2, 3) | st.just(0.5)
ASSERTIONS: dict[str, st.SearchStrategy[Any]] = {
    "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
    "const": VALUES,
    "enum": st.lists(VALUES, max_size=4),
    "uniqueItems": st.booleans(),
    "required": st.lists(NAMES, max_size=2, unique=True),
    "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=2, unique=True)),
    "multipleOf": st.sampled_from([1, 2, 0.5]),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), LIMITS),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), COUNTS),
    **dict.fromkeys(("minProperties", "maxProperties", "minContains", "maxContains"), COUNTS),
}


def _with(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(NAMES, inner, max_size=3)
    one = [
        "items",
        "not",
        "contains",
        "if",
        "then",
        "else",
        "additionalProperties",
        "propertyNames",
    ]
    parts = {
        **dict.fromkeys([*one, "additionalProperties"], inner),
        **dict.fromkeys(["allOf", "anyOf", "oneOf", "prefixItems"], several),
        **dict.fromkeys(["properties", "dependentSchemas"], named),
    }
    return st.fixed_dictionaries({}, optional=parts | ASSERTIONS)


SCHEMAS = st.recursive(
    st.booleans() | st.fixed_dictionaries({}, optional=ASSERTIONS), _with, max_leaves=6
).filter(lambda schema: isinstance(schema, dict))


@settings(max_examples=80)
@given(schema=SCHEMAS, value=VALUES)
def test_a_check_comes_to_what_the_standard_says(schema: dict[str, Any], value: Any) -> None:
    """Given any schema and value, the verdict is that of the reference implementation."""
    expected = Draft202012Validator(schema).is_valid(value)
    assert (find_fault(value, schema) is None) == expected


ODD = st.sampled_from([None, True, 0, -1, 1.5, 2.0, "x", "object", [], ["a"], ["a", "a"], [1], {}])


@settings(max_examples=80)
@given(keyword=st.sampled_from([*ASSERTIONS, "items", "not", "if"]), rule=ODD | VALUES)
def test_a_keyword_holds_what_the_standard_says(keyword: str, rule: Any) -> None:
    """Given anything as a keyword's value, it is taken or refused as by the standard."""
    schema = {"properties": {"a": {keyword: rule}}}
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        with pytest.raises(ValueError, match=rf"no JSON schema at `properties\.a\.{keyword}|a `"):
            read_bounded_schema(schema)
    else:
        read_bounded_schema(schema)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"allOf": [{"uniqueItems": True}] * 900}, "more than 100 parts against one value"),
        ({"items": {"anyOf": [{"oneOf": [{}] * 60}] * 2}}, "more than 100 parts against one value"),
        ({"enum": [1] * 10_000}, "longer than 20000 characters"),
        (
            {"$defs": {"a": {"enum": [1] * 500}}, "prefixItems": [{"$ref": "#/$defs/a"}] * 30},
            "more than 10000 rules",
        ),
        ({"allOf": []}, "no JSON schema at `allOf`"),
        ({"required": ["a", "a"]}, "no JSON schema at `required`"),
        ({"minItems": -1}, "no JSON schema at `minItems`"),
        ({"multipleOf": 0}, "no JSON schema at `multipleOf`"),
        ({"properties": {"a": {"items": 3}}}, "no JSON schema at `properties.a.items`"),
        ({"maximum": float("inf")}, "no JSON"),
    ],
)
def test_refused_schemas(schema: dict[str, Any], said: str) -> None:
    """Given a schema over a bound or one that is none, it is refused with the reason."""
    with pytest.raises(ValueError, match=said):
        read_bounded_schema(schema)


def _unique_everywhere(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"uniqueItems": True, "allOf": [{"uniqueItems": True}] * 98}
    for _ in range(levels):
        schema = {"items": schema, "uniqueItems": True, "allOf": [{"uniqueItems": True}] * 98}
    return schema


def test_a_runaway_check_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given what would compare many large things for long, the check ends and says why."""
    monkeypatch.setattr(_schema_check, "MAX_STEPS", 100_000)
    items = [{"a": number, "b": [number, str(number)]} for number in range(500)]
    wrong = find_fault([items], _unique_everywhere(2))
    assert wrong == "holding it to the schema takes more than 100000 steps"


def test_a_check_takes_no_longer_than_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given any check, its steps are at most its rules times the characters of the answer."""
    taken: list[int] = []

    class Counted(_schema_check._SchemaCheck):
        def _count(self, steps: int) -> None:
            taken.append(steps)

    monkeypatch.setattr(_schema_check, "_SchemaCheck", Counted)
    answers = [
        "[" + ",".join("[1,1]" for _ in range(20)) + "]",
        "[" * 30 + "]" * 30,
        "0",
        '{"a":0}',
    ]
    schemas: list[dict[str, Any]] = [
        _unique_everywhere(0),
        {"items": {"enum": [[1, n] for n in range(50)], "uniqueItems": True}},
        {"required": [f"n{n}" for n in range(100)], "items": {"required": ["a"]}},
        {},
    ]
    for text in answers:
        for schema in schemas:
            taken.clear()
            find_fault(json.loads(text), schema)
            # The values that the schema lists are looked at once, whatever the answer is.
            rules = read_bounded_schema(schema).rules
            assert sum(taken) <= rules * len(text) + 2 * rules


def test_cheap_is_what_is_small() -> None:
    """Given a small answer and schema, a check is cheap; with a long one of either it is not."""
    small = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert is_cheap('{"a": "tea"}', small)
    assert not is_cheap('{"a": "' + "x" * 10_000 + '"}', small)
    assert not is_cheap("[" + "1," * 200 + "1]", {"enum": list(range(3_000))})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x" * 1_000_001, "longer than 1000000 characters"),
        ("1" * 5_000, "it is no JSON"),
        ("[" * 100_000 + "]" * 100_000, "it is no JSON"),
        ('"\\ud800"', "it is no JSON"),
        ("1e400", "it is no JSON"),
        ("3", "breaks the rule `type`"),
    ],
)
def test_refused_answers(text: str, said: str) -> None:
    """Given an answer that is too long, no JSON or off its schema, the reason is told."""
    with pytest.raises(ValueError, match=said):
        read_answer(text, {"type": "string"})


def test_decimal_fractions_are_multiples_as_their_digits_say() -> None:
    """Given 0.3, it is a multiple of 0.1, and of nothing else that binary fractions make of it."""
    assert find_fault(0.3, {"multipleOf": 0.1}) is None
    assert find_fault(0.35, {"multipleOf": 0.1}) == "`.` breaks the rule `multipleOf`"
    assert find_fault(10**400, {"multipleOf": 0.5}) is None


def test_references_are_written_out() -> None:
    """Given references, what they lead to is checked, beside what stands next to them."""
    schema = {"$defs": {"n": {"minimum": 2}}, "items": {"$ref": "#/$defs/n", "maximum": 3}}
    assert find_fault([2, 3], schema) is None
    assert find_fault([1], schema) == "`0` breaks the rule `minimum`"
    assert find_fault([4], schema) == "`0` breaks the rule `maximum`"
