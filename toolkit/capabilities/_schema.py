"""The JSON schemas that callers may set for an answer, and the validation by jsonschema-rs.

A schema is bounded before it is used, so that the size of schema and answer bounds a check. Every
keyword is either enforced, known to assert nothing, or rejected.
"""

import json
import math
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError

JsonObject = dict[str, object]

MAX_CHARACTERS = 20_000
MAX_PARTS = 1_000  # schemas within the schema, once every reference is written out
MAX_RULES = 10_000  # the parts, and every value and name that they list
MAX_PARTS_AT_ONE_PLACE = 100  # that are all checked against one value, as by `allOf`
MAX_DEPTH = 32
MAX_ANSWER_CHARACTERS = 1_000_000
MAX_ANSWER_DEPTH = 200  # jsonschema-rs recurses, and an overflow of its stack ends the process
# The most work for a check outside a worker process: rules of the schema × characters.
MAX_INLINE_STEPS = 10_000
# A pattern counts as so many rules, as one of the largest size takes two milliseconds to compile.
PATTERN_RULES = 500
MAX_PATTERN_BYTES = 300_000  # once compiled, by an engine without backtracking
CACHE_SIZE = 32  # schemas; a workflow's nodes often share one

# Keywords by the type of their value: one schema, a list of schemas, or schemas by name.
_SINGLE_KEYWORDS = (
    "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then",
)  # fmt: skip
_LIST_KEYWORDS = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED_KEYWORDS = ("dependentSchemas", "properties")
_SCHEMA_KEYWORDS = frozenset((*_SINGLE_KEYWORDS, *_LIST_KEYWORDS, *_NAMED_KEYWORDS))
# Keywords whose schemas are checked against the same value as the schema that contains them.
_SAME_VALUE_KEYWORDS = frozenset(
    {"allOf", "anyOf", "dependentSchemas", "else", "if", "not", "oneOf", "then"}
)
_ASSERTIONS = frozenset(
    {"const", "dependentRequired", "enum", "exclusiveMaximum", "exclusiveMinimum", "format",
     "maxContains", "maxItems", "maxLength", "maxProperties", "maximum", "minContains", "minItems",
     "minLength", "minProperties", "minimum", "multipleOf", "pattern", "required", "type",
     "uniqueItems"}
)  # fmt: skip
# Keywords that assert nothing. `discriminator` is OpenAPI's, and pydantic writes it.
_ANNOTATIONS = frozenset(
    {"$comment", "$defs", "$schema", "contentEncoding", "contentMediaType", "contentSchema",
     "default", "definitions", "deprecated", "description", "discriminator", "examples",
     "readOnly", "title", "writeOnly"}
)  # fmt: skip
_KNOWN_KEYWORDS = {*_SCHEMA_KEYWORDS, *_ASSERTIONS, *_ANNOTATIONS, "$ref"}


class BoundedSchema(NamedTuple):
    """A JSON schema that is checked in a bounded number of steps.

    Attributes:
        plain: schema with every reference written out and without annotations. Its callers
            share it and must not change it.
        rules: number of its parts, and of the values and names that they list. A check takes at
            most this many steps for each value in an answer.
    """

    plain: JsonObject
    rules: int


def read_bounded_schema(schema: JsonObject) -> BoundedSchema:
    """Read a schema, and check that it is bounded; this takes milliseconds for any schema.

    Raises:
        ValueError: the schema is invalid, has a keyword that is not enforced, or is not bounded.
            An unbounded schema is too large, deep or recursive, or refers out of the document.
    """
    try:
        text = json.dumps(schema, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (RecursionError, TypeError, ValueError):
        raise ValueError("is nested too deeply, or is not JSON") from None
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"is longer than {MAX_CHARACTERS} characters")
    return _read_schema(text)


@lru_cache(CACHE_SIZE)
def _read_schema(text: str) -> BoundedSchema:
    try:
        root: JsonObject = json.loads(text)
        reader = _ReferenceExpander(root)
        plain = reader.expand(root, (), ())
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    if not isinstance(plain, dict):
        raise ValueError("is not an object")
    _count_parts_at_one_place(plain)
    _compile_schema(plain)
    return BoundedSchema(plain, reader.rules)


def _compile_schema(plain: JsonObject) -> "Draft202012Validator":
    """Compile a bounded schema. It is not cached, because its patterns may take megabytes.

    Raises:
        ValueError: it is no JSON schema, or has a format or a pattern that cannot be enforced.
    """
    # Not before a schema is given: most work has none.
    from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError

    limits = RegexOptions(size_limit=MAX_PATTERN_BYTES, dfa_size_limit=MAX_PATTERN_BYTES)
    try:
        return Draft202012Validator(
            plain,
            validate_formats=True,
            ignore_unknown_formats=False,
            mask="value",
            pattern_options=limits,
            offline=True,
        )
    except ValidationError as error:
        raise _explain_refusal(error) from None


def _explain_refusal(error: "ValidationError") -> ValueError:
    place = _spell_path(error.instance_path)
    if error.kind.name == "format":  # of the meta-schema: a pattern has the format `regex`
        return ValueError(
            f"has a pattern at `{place}` that is not a regular expression, is too large, "
            "or uses look-around or back-references"
        )
    if not error.kind.name:  # an unknown format breaks no rule of the meta-schema
        return ValueError(f"has a format at `{place}` that is not supported here")
    return ValueError(f"is not a JSON schema at `{place}`")


class _ReferenceExpander:
    """Expands the references of one schema, and counts the parts and rules of the result."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._parts = 0
        self.rules = 0

    def expand(
        self, schema: object, trail: tuple[str, ...], path: tuple[str, ...], depth: int = 0
    ) -> object:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise ValueError(f"has more than {MAX_PARTS} parts")
        if depth > MAX_DEPTH:
            raise ValueError(f"is nested more than {MAX_DEPTH} deep")
        self._count_rules(1)
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise _build_schema_error(path)
        plain: JsonObject = {}
        for name, value in schema.items():
            _check_keyword(name, value)
            if name in _ASSERTIONS:
                self._count_rules(PATTERN_RULES if name == "pattern" else 1 + _count_values(value))
                plain[name] = value
        for name, value in schema.items():
            if name in _SCHEMA_KEYWORDS:
                plain[name] = self._expand_value(name, value, trail, (*path, name), depth + 1)
        if "$ref" in schema:
            target = self._resolve_reference(schema["$ref"], trail)
            target_trail = (*trail, str(schema["$ref"]))
            reached = self.expand(target, target_trail, (*path, "$ref"), depth + 1)
            both = plain.get("allOf", [])
            plain["allOf"] = [*both, reached] if isinstance(both, list) else [reached]
        return plain

    def _count_rules(self, rules: int) -> None:
        self.rules += rules
        if self.rules > MAX_RULES:
            raise ValueError(f"lists more than {MAX_RULES} rules, values and names")

    def _expand_value(
        self, name: str, value: object, trail: tuple[str, ...], path: tuple[str, ...], depth: int
    ) -> object:
        """Expand the value of a keyword: one schema, a list of them, or schemas by name."""
        if name in _SINGLE_KEYWORDS:
            return self.expand(value, trail, path, depth)
        if name in _LIST_KEYWORDS and isinstance(value, list):
            return [
                self.expand(part, trail, (*path, str(place)), depth)
                for place, part in enumerate(value)
            ]
        if name in _NAMED_KEYWORDS and isinstance(value, dict):
            return {
                key: self.expand(part, trail, (*path, key), depth) for key, part in value.items()
            }
        raise _build_schema_error(path)

    def _resolve_reference(self, reference: object, trail: tuple[str, ...]) -> object:
        parts = str(reference).split("/")
        home = self._root.get(parts[1]) if len(parts) == 3 else None
        if parts[0] != "#" or parts[1:2] not in (["$defs"], ["definitions"]):
            raise ValueError("may refer only to its own `$defs`")
        if not isinstance(home, dict) or parts[2] not in home:
            raise ValueError(f"refers to `{reference}`, which does not exist")
        if reference in trail:
            raise ValueError(f"refers to itself at `{reference}`")
        target: object = home[parts[2]]
        return target


def _check_keyword(name: str, value: object) -> None:
    """Reject a keyword that is unknown, or whose check is not bounded."""
    if name not in _KNOWN_KEYWORDS and not name.startswith("x-"):
        raise ValueError(f"uses `{name}`, which is not supported here")
    if name == "format" and value == "regex":  # a value could be a pattern of any size
        raise ValueError("uses the format `regex`, which is not supported here")


def _count_parts_at_one_place(schema: object) -> int:
    """Count the schemas that are checked against the same value as this schema, including itself.

    Raises:
        ValueError: there are too many, here or further in.
    """
    if not isinstance(schema, dict):
        return 1
    count = 1
    for name, value in schema.items():
        inner = [value] if name in _SINGLE_KEYWORDS else value if name in _LIST_KEYWORDS else []
        inner = value.values() if name in _NAMED_KEYWORDS else inner
        counts = [_count_parts_at_one_place(part) for part in inner]
        count += sum(counts) if name in _SAME_VALUE_KEYWORDS else 0
    if count > MAX_PARTS_AT_ONE_PLACE:
        raise ValueError(f"checks more than {MAX_PARTS_AT_ONE_PLACE} parts against one value")
    return count


def _build_schema_error(path: tuple[str, ...]) -> ValueError:
    return ValueError(f"is not a JSON schema at `{_spell_path(path)}`")


def _spell_path(path: Iterable[str | int]) -> str:
    return ".".join(map(str, path)) or "."


def _count_values(value: object) -> int:
    """Count the items and members within a value, at any depth."""
    return sum(1 + _count_values(child) for child in _list_children(value))


def is_cheap(text: str, schema: JsonObject) -> bool:
    """Check whether validation takes at most a few milliseconds for any such answer and schema."""
    return len(text) * read_bounded_schema(schema).rules <= MAX_INLINE_STEPS


def read_answer(text: str, schema: JsonObject) -> tuple[object, str]:
    """Read the JSON in an answer, and validate it against a schema.

    Returns:
        the value, and its text with each member on a line.

    Raises:
        ValueError: the answer is invalid; the reason does not quote the value itself.
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
        ValueError: there is no JSON, or a value that JSON cannot express.

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
    """Return the first place and keyword that a value breaks, or None if it matches the schema.

    >>> find_fault({"words": "three"}, {"properties": {"words": {"type": "integer"}}})
    '`words` breaks the rule `type`'
    """
    from jsonschema_rs import ValidationError

    if _is_too_deep(value):
        return "it is nested too deeply"
    try:
        # `iter_errors` would take seconds and gigabytes for an answer that is wrong everywhere.
        _compile_schema(read_bounded_schema(schema).plain).validate(value)
    except ValidationError as error:
        return f"`{_spell_path(error.instance_path)}` breaks the rule `{error.kind.name}`"
    return None


def _is_too_deep(value: object) -> bool:
    level = [value]
    for _ in range(MAX_ANSWER_DEPTH):
        level = [child for parent in level for child in _list_children(parent)]
        if not level:
            return False
    return True


def _list_children(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
