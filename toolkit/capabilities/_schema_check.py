"""Answers held to a bounded schema, in steps that are counted; runs in a worker process too.

The time a check takes is linear in the answer for each rule of the schema: what is compared is made
hashable once, so that neither `uniqueItems` nor `enum` compares each with each.
"""

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import TypeAlias

from toolkit.capabilities._schema import JsonObject, read_bounded_schema

MAX_ANSWER_CHARACTERS = 1_000_000  # characters
MAX_STEPS = 1_000_000  # one to four seconds of one core
# The most work for a check outside a worker process: rules of the schema × characters.
MAX_INLINE_STEPS = 10_000

# The ends of the size keywords (`minLength`, `maxItems`, …), by type of the value.
_SIZE_SUFFIXES: dict[type, str] = {str: "Length", list: "Items", dict: "Properties"}
JsonPath: TypeAlias = tuple[str, ...]
# Where a value breaks which keyword.
Breach: TypeAlias = tuple[JsonPath, str]


def is_cheap(text: str, schema: JsonObject) -> bool:
    """Tell whether a check is done in a few milliseconds, whatever answer and schema hold."""
    return len(text) * read_bounded_schema(schema).rules <= MAX_INLINE_STEPS


def read_answer(text: str, schema: JsonObject) -> tuple[object, str]:
    """Read the JSON in an answer and hold it to a schema.

    Returns:
        the value, and its text with each member on a line.

    Raises:
        ValueError: with the reason, which says nothing of the value itself.
    """
    if len(text) > MAX_ANSWER_CHARACTERS:
        raise ValueError(f"it is longer than {MAX_ANSWER_CHARACTERS} characters")
    try:
        value = parse_answer_json(text)
    except ValueError:
        raise ValueError("it is no JSON") from None
    wrong = find_fault(value, schema)
    if wrong is not None:
        raise ValueError(wrong)
    return value, json.dumps(value, ensure_ascii=False, indent=2)


def parse_answer_json(text: str) -> object:
    """Read the JSON value in an answer, which may stand in a Markdown code block.

    Raises:
        ValueError: there is none, or it holds what JSON cannot express.

    >>> parse_answer_json('```json\\n{"words": 3}\\n```')
    {'words': 3}
    """
    body = text.strip()
    if body.startswith("```"):
        body = body.partition("\n")[2].rpartition("```")[0]
    try:
        value: object = json.loads(body, parse_constant=_refuse_constant, parse_float=_parse_finite)
        json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate is no text
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _parse_finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def find_fault(value: object, schema: JsonObject) -> str | None:
    """Say where a value differs from a schema; none if it matches. Says nothing of the value.

    >>> find_fault({"words": "three"}, {"properties": {"words": {"type": "integer"}}})
    '`words` breaks the rule `type`'
    """
    try:
        breach = _SchemaCheck().find_breach(read_bounded_schema(schema).plain, value, ())
    except _TooManyStepsError:
        return f"holding it to the schema takes more than {MAX_STEPS} steps"
    except RecursionError:
        return "it is nested too deeply"
    if breach is None:
        return None
    place, keyword = breach
    return f"`{'.'.join(place) or '.'}` breaks the rule `{keyword}`"


class _TooManyStepsError(Exception):
    """A check takes longer than anybody waits."""


class _SchemaCheck:
    """One check, which counts its steps and remembers how the values of an `enum` compare."""

    def __init__(self) -> None:
        self._steps_left = MAX_STEPS
        self._enum_keys: dict[int, frozenset[object]] = {}

    def find_breach(self, schema: object, value: object, place: JsonPath) -> Breach | None:
        """Find the first breach of a schema: of the value itself before those within it."""
        self._count_steps(1)
        if not isinstance(schema, dict):
            return None if schema else (place, "false")
        keyword = next(self._find_broken(schema, value), None)
        if keyword is not None:
            return place, keyword
        return (
            self._check_combined(schema, value, place)
            or (self._check_object(schema, value, place) if isinstance(value, dict) else None)
            or (self._check_list(schema, value, place) if isinstance(value, list) else None)
        )

    def _count_steps(self, steps: int) -> None:
        self._steps_left -= steps
        if self._steps_left < 0:
            raise _TooManyStepsError

    def _holds(self, schema: object, value: object) -> bool:
        return self.find_breach(schema, value, ()) is None

    def _find_broken(self, schema: JsonObject, value: object) -> Iterator[str]:
        """Name the assertions that a value breaks by itself."""
        for keyword, rule in schema.items():
            self._count_steps(1)
            match keyword:
                case "type":
                    broken = not any(_is_of_type(n, value) for n in _to_names(rule))
                case "const":
                    broken = self._make_key(value) != self._make_key(rule)
                case "enum":
                    broken = self._make_key(value) not in self._collect_keys(rule)
                case "uniqueItems":
                    broken = rule is True and isinstance(value, list) and self._repeats(value)
                case "required" | "dependentRequired":
                    self._count_steps(_count_names(rule))
                    broken = isinstance(value, dict) and _lacks(keyword, rule, value)
                case _:
                    broken = _is_out_of_range(keyword, rule, value)
            if broken:
                yield keyword

    def _repeats(self, items: list[object]) -> bool:
        seen: set[object] = set()
        for item in items:
            key = self._make_key(item)
            if key in seen:
                return True
            seen.add(key)
        return False

    def _collect_keys(self, rule: object) -> frozenset[object]:
        if id(rule) not in self._enum_keys and isinstance(rule, list):
            self._enum_keys[id(rule)] = frozenset(map(self._make_key, rule))
        return self._enum_keys[id(rule)]

    def _make_key(self, value: object) -> object:
        """Make a value comparable as JSON has it: 1 is 1.0, and true is no number."""
        self._count_steps(1)
        match value:
            case bool():
                return "bool", value
            case list():
                return "list", tuple(map(self._make_key, value))
            case dict():
                return "dict", frozenset(
                    (name, self._make_key(item)) for name, item in value.items()
                )
        return "", value

    def _check_combined(self, schema: JsonObject, value: object, place: JsonPath) -> Breach | None:
        """Hold a value to the schemas that speak of it as a whole."""
        for part in _get_list(schema, "allOf"):
            breach = self.find_breach(part, value, place)
            if breach is not None:
                return breach
        if "anyOf" in schema and not any(self._holds(p, value) for p in _get_list(schema, "anyOf")):
            return place, "anyOf"
        if "oneOf" in schema:
            matching = (part for part in _get_list(schema, "oneOf") if self._holds(part, value))
            if next(matching, None) is None or next(matching, None) is not None:
                return place, "oneOf"
        if "not" in schema and self._holds(schema["not"], value):
            return place, "not"
        if "if" in schema:
            chosen = "then" if self._holds(schema["if"], value) else "else"
            return self.find_breach(schema.get(chosen, True), value, place)
        return None

    def _check_object(
        self, schema: JsonObject, value: JsonObject, place: JsonPath
    ) -> Breach | None:
        known, needed = _get_dict(schema, "properties"), _get_dict(schema, "dependentSchemas")
        other = schema.get("additionalProperties", True)
        for name, part in needed.items():
            self._count_steps(1)
            breach = self.find_breach(part, value, place) if name in value else None
            if breach is not None:
                return breach
        for name, item in value.items():
            if "propertyNames" in schema and not self._holds(schema["propertyNames"], name):
                return place, "propertyNames"
            if name not in known and other is False:
                return place, "additionalProperties"
            breach = self.find_breach(known.get(name, other), item, (*place, name))
            if breach is not None:
                return breach
        return None

    def _check_list(
        self, schema: JsonObject, value: list[object], place: JsonPath
    ) -> Breach | None:
        first = _get_list(schema, "prefixItems")
        others = schema.get("items", True)
        if others is not True or first:
            for index, item in enumerate(value):
                part = first[index] if index < len(first) else others
                breach = self.find_breach(part, item, (*place, str(index)))
                if breach is not None:
                    return breach
        if "contains" not in schema:
            return None
        found = sum(self._holds(schema["contains"], item) for item in value)
        if found < _get_number(schema, "minContains", 1):
            return place, "minContains" if "minContains" in schema else "contains"
        return (place, "maxContains") if found > _get_number(schema, "maxContains", found) else None


def _lacks(keyword: str, rule: object, value: JsonObject) -> bool:
    """Tell whether an object lacks a member that it has to have."""
    if keyword == "required":
        return isinstance(rule, list) and not value.keys() >= set(rule)
    needed = rule if isinstance(rule, dict) else {}
    return any(name in value and not value.keys() >= set(needed[name]) for name in needed)


def _is_out_of_range(keyword: str, rule: object, value: object) -> bool:
    """Tell whether a value breaks a rule about its size."""
    if not isinstance(rule, int | float) or isinstance(value, bool):
        return False
    if isinstance(value, str | list | dict):
        kind = _SIZE_SUFFIXES[type(value)]
        size = len(value)
        return (keyword == f"min{kind}" and size < rule) or (
            keyword == f"max{kind}" and size > rule
        )
    if not isinstance(value, int | float):
        return False
    match keyword:
        case "minimum":
            return value < rule
        case "maximum":
            return value > rule
        case "exclusiveMinimum":
            return value <= rule
        case "exclusiveMaximum":
            return value >= rule
        case "multipleOf":
            # As the digits say it: 0.3 is three times 0.1.
            return (Fraction(str(value)) / Fraction(str(rule))).denominator != 1
    return False


def _is_of_type(name: object, value: object) -> bool:
    match name:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            return whole and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list)
    return isinstance(value, dict)


def _to_names(rule: object) -> list[object]:
    return rule if isinstance(rule, list) else [rule]


def _count_names(rule: object) -> int:
    lists = rule.values() if isinstance(rule, dict) else [rule]
    return sum(len(names) for names in lists if isinstance(names, list))


def _get_list(schema: JsonObject, keyword: str) -> list[object]:
    found = schema.get(keyword)
    return found if isinstance(found, list) else []


def _get_dict(schema: JsonObject, keyword: str) -> JsonObject:
    found = schema.get(keyword)
    return found if isinstance(found, dict) else {}


def _get_number(schema: JsonObject, keyword: str, default: int) -> float:
    found = schema.get(keyword, default)
    return found if isinstance(found, int | float) else default
