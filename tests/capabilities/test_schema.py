"""Schemas of answers: accepted schemas, verdicts, and the time of a check."""

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from toolkit.capabilities._schema import find_fault, is_cheap, read_answer, read_bounded_schema

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
    by_name = st.dictionaries(NAMES, inner, max_size=3)
    parts = {
        **dict.fromkeys(["items", "not", "contains", "if", "then", "else"], inner),
        **dict.fromkeys(["additionalProperties", "propertyNames"], inner),
        **dict.fromkeys(["allOf", "anyOf", "oneOf", "prefixItems"], several),
        **dict.fromkeys(["properties", "dependentSchemas"], by_name),
    }
    return st.fixed_dictionaries({}, optional=parts | ASSERTIONS)


SCHEMAS = st.recursive(
    st.booleans() | st.fixed_dictionaries({}, optional=ASSERTIONS), _with, max_leaves=6
).filter(lambda schema: isinstance(schema, dict))


@settings(max_examples=80)
@given(schema=SCHEMAS, value=VALUES)
def test_verdict_is_that_of_the_standard(schema: dict[str, Any], value: Any) -> None:
    """Given any schema and value, then the verdict is that of the reference implementation."""
    expected = Draft202012Validator(schema).is_valid(value)
    assert (find_fault(value, schema) is None) == expected


ODD = st.sampled_from([None, True, 0, -1, 1.5, 2.0, "x", "object", [], ["a"], ["a", "a"], [1], {}])


@settings(max_examples=80)
@given(keyword=st.sampled_from([*ASSERTIONS, "items", "not", "if"]), rule=ODD | VALUES)
def test_accepts_the_keyword_values_of_the_standard(keyword: str, rule: Any) -> None:
    """Given any keyword value, then the schema is accepted or refused as by the standard."""
    assume(keyword in ASSERTIONS or not isinstance(rule, dict) or not rule)  # no unknown keywords
    schema = {"properties": {"a": {keyword: rule}}}
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        with pytest.raises(ValueError, match=rf"not a JSON schema at `properties\.a\.{keyword}"):
            read_bounded_schema(schema)
    else:
        read_bounded_schema(schema)


def build_doubling_schema(levels: int) -> dict[str, object]:
    """Build a schema in which each level names the level below it twice."""
    levels_above = {
        f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n - 1}"}] * 2} for n in range(1, levels)
    }
    return {"$defs": {"a0": {"type": "string"}, **levels_above}, "$ref": f"#/$defs/a{levels - 1}"}


def build_nested_schema(levels: int) -> dict[str, object]:
    """Build a schema of nested negations."""
    schema: dict[str, object] = {"type": "string"}
    for _ in range(levels):
        schema = {"not": schema}
    return schema


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"allOf": [{"uniqueItems": True}] * 900}, "more than 100 parts against one value"),
        ({"items": {"anyOf": [{"oneOf": [{}] * 60}] * 2}}, "more than 100 parts against one value"),
        ({"enum": [1] * 10_000}, "longer than 20000 characters"),
        (
            {"$defs": {"a": {"enum": [1] * 500}}, "prefixItems": [{"$ref": "#/$defs/a"}] * 30},
            "more than 10000 rules",
        ),
        ({"type": "strng"}, "not a JSON schema at `type`"),
        ({"properties": []}, "not a JSON schema at `properties`"),
        ({"allOf": [{"patternProperties": {"(a+)+$": {}}}]}, "`patternProperties`"),
        ({"$ref": "https://other.example/schema.json"}, r"its own `\$defs`"),
        ({"$ref": "#/properties/a"}, r"its own `\$defs`"),
        ({"$ref": "#/$defs/Missing"}, "does not exist"),
        ({"$defs": {"A": {"items": {"$ref": "#/$defs/A"}}}, "$ref": "#/$defs/A"}, "itself"),
        (build_doubling_schema(12), "parts"),
        (build_nested_schema(60), "nested"),
        ({"description": "x" * 20_001}, "longer than"),
        ({"properties": {"a": {"items": 3}}}, "not a JSON schema at `properties.a.items`"),
        ({"maximum": float("inf")}, "not JSON"),
        ({"properties": {"a": {"maxLenght": 3}}}, "uses `maxLenght`, which is not supported"),
        ({"properties": {"a": {"format": "path"}}}, r"format at `properties\.a\.format`"),
        ({"format": "regex"}, "the format `regex`, which is not supported"),
        ({"properties": {"a": {"pattern": "(?=a)b"}}}, r"pattern at `properties\.a\.pattern`"),
        ({"pattern": r"(a)\1"}, "look-around or back-references"),
        ({"pattern": "[^a]{5000}"}, "is too large"),
        ({"prefixItems": [{"pattern": "a"}] * 20}, "more than 10000 rules"),
    ],
)
def test_rejects_an_invalid_or_oversized_schema(schema: dict[str, Any], message: str) -> None:
    """Given an invalid schema, or a schema over a bound, then it is refused with the reason."""
    with pytest.raises(ValueError, match=message):
        read_bounded_schema(schema)


def test_check_of_small_input_is_cheap() -> None:
    """Given a small answer and schema, then a check is cheap; a long answer or schema is not."""
    small = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert is_cheap('{"a": "tea"}', small)
    assert not is_cheap('{"a": "' + "x" * 10_000 + '"}', small)
    assert not is_cheap("[" + "1," * 200 + "1]", {"enum": list(range(3_000))})
    assert not is_cheap('"' + "a" * 20 + '"', {"pattern": "(a*)*b"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x" * 1_000_001, "longer than 1000000 characters"),
        ("1" * 5_000, "it is no JSON"),
        ("NaN", "it is no JSON"),
        ("[" * 100_000 + "]" * 100_000, "it is no JSON"),
        ('"\\ud800"', "it is no JSON"),
        ("1e400", "it is no JSON"),
        ("[" * 201 + "]" * 201, "it is nested too deeply"),
        ("3", "breaks the rule `type`"),
    ],
)
def test_rejects_an_invalid_answer(text: str, message: str) -> None:
    """Given an answer that is too long, no JSON or off its schema, then it is refused."""
    with pytest.raises(ValueError, match=message):
        read_answer(text, {"type": "string"})


def test_decimal_fractions_are_exact_multiples() -> None:
    """Given 0.3, then it is a multiple of 0.1, although its binary fraction is not."""
    assert find_fault(0.3, {"multipleOf": 0.1}) is None
    assert find_fault(0.35, {"multipleOf": 0.1}) == "`.` breaks the rule `multipleOf`"
    assert find_fault(10**400, {"multipleOf": 0.5}) is None


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"pattern": "^[A-Z]{3}$"}, "TEA", "Tea"),
        ({"format": "date"}, "2026-11-29", "2026-11-31"),
        ({"format": "email"}, "tea@example.org", "tea"),
        ({"format": "uuid"}, "00000000-0000-4000-8000-000000000000", "0-0"),
    ],
)
def test_enforces_patterns_and_formats(schema: dict[str, Any], right: str, wrong: str) -> None:
    """Given a pattern or a format, then an answer matches it or breaks the rule."""
    schema = {"title": "Tea", "examples": [3], "x-role": "code", "items": schema}
    (keyword,) = schema["items"]
    assert find_fault([right], schema) is None
    assert find_fault([right, wrong], schema) == f"`1` breaks the rule `{keyword}`"


def test_runaway_pattern_takes_linear_time() -> None:
    """Given a pattern on which a backtracking engine runs away, then a long text is checked."""
    assert find_fault("a" * 1_000_000, {"pattern": "^(a+)+$"}) is None
    assert find_fault("a" * 1_000_000 + "b", {"pattern": "^(a+)+$"}) is not None


def test_property_may_have_the_name_of_a_keyword() -> None:
    """Given a property with the name of a refused keyword, then the schema is accepted."""
    read_bounded_schema({"type": "object", "properties": {"$id": {"type": "string"}}})


def test_resolves_references() -> None:
    """Given references, then their rules apply together with the rules next to them."""
    schema = {"$defs": {"n": {"minimum": 2}}, "items": {"$ref": "#/$defs/n", "maximum": 3}}
    assert find_fault([2, 3], schema) is None
    assert find_fault([1], schema) == "`0` breaks the rule `minimum`"
    assert find_fault([4], schema) == "`0` breaks the rule `maximum`"
