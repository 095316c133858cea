"""A filler of JSON schemas with values from a prompt, so that replies are valid and sensible."""

import re
from collections.abc import Callable, Sequence
from math import ceil, inf
from typing import Any

from toolkit.sandbox.text import answers, prose, reading
from toolkit.sandbox.text.prompts import ParsedPrompt
from toolkit.sandbox.text.sentences import capitalize_first, extract_keywords, shorten_sentence

Schema = dict[str, Any]
_MOODS = ("happy", "annoyed", "neutral")
_READ_FORMATS = ("date", "email", "uri")  # texts contain no values of other formats
_MAX_DEPTH = 8  # below it only required members are filled, and lists are empty
_SHARE = 0.92  # of the range of a number
_ITEM_WORDS = 20


def _is_field(kind: str, name: str) -> bool:
    """Return True if a field is of a kind, such as `price`, by its name."""
    return re.search(reading.load_knowledge()["fields"][kind], name, re.I) is not None


class SchemaFiller:
    """A filler of one schema for one prompt."""

    def __init__(self, schema: Schema, ask: ParsedPrompt) -> None:
        self._root = schema
        self._ask = ask
        self._material = answers.find_material(ask)

    def fill_schema(self) -> Any:
        """Return the whole reply."""
        return self._fill_value(self._root, "", 0, 0)

    def _resolve_schema(self, schema: Any) -> Schema:
        """Return a schema with its reference and its `allOf` written out."""
        result: Schema = schema if isinstance(schema, dict) else {}
        for _ in range(_MAX_DEPTH):
            if not result.get("$ref"):
                break
            node: Any = self._root
            for step in filter(None, str(result["$ref"]).lstrip("#").split("/")):
                node = node.get(step, {}) if isinstance(node, dict) else {}
            result = {**result, "$ref": None, **node}
        for part in map(self._resolve_schema, result.get("allOf", [])):
            members = {**result.get("properties", {}), **part.get("properties", {})}
            required = [*result.get("required", []), *part.get("required", [])]
            result = {**result, **part, "properties": members, "required": required}
        return result

    def _fill_value(self, schema: Any, name: str, index: int, depth: int) -> Any:
        schema = self._resolve_schema(schema)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return self._choose_option(schema["enum"])
        options = schema.get("anyOf") or schema.get("oneOf")
        if options:
            if {"type": "null"} in options and depth > _MAX_DEPTH:
                return None
            real = [way for way in options if self._resolve_schema(way).get("type") != "null"]
            return self._fill_value((real or options)[0], name, index, depth)
        kind = schema.get("type") or ("object" if "properties" in schema else "string")
        if isinstance(kind, list):
            kind = next((name for name in kind if name != "null"), "null")
        match kind:
            case "object":
                return self._fill_object(schema, index, depth)
            case "array":
                return self._fill_array(schema, name, depth)
            case "number" | "integer":
                return self._fill_number(schema, name, index, is_whole=kind == "integer")
            case "boolean":
                answer = reading.is_about(name, self._material) if self._material else None
                return not _is_field("problem", name) if answer is None else answer
            case "null":
                return None
        return self._fill_string(schema, name, index)

    def _fill_object(self, schema: Schema, index: int, depth: int) -> dict[str, Any]:
        members, required = schema.get("properties", {}), schema.get("required", [])
        names = required if depth > _MAX_DEPTH else dict.fromkeys([*members, *required])
        return {name: self._fill_value(members.get(name), name, index, depth + 1) for name in names}

    def _fill_array(self, schema: Schema, name: str, depth: int) -> list[Any]:
        item = self._resolve_schema(schema.get("items"))
        number = self._ask.count("bullets") or answers.count_items(self._ask) or 3
        if _is_field("problem", name) or depth > _MAX_DEPTH:
            number = 0
        low, high = int(schema.get("minItems", 0)), int(schema.get("maxItems", number))
        number = max(low, min(number, high))
        if item.get("enum"):
            return (list(item["enum"]) * (low + 1))[: max(low, min(1, number))]
        if _is_field("tag", name) and item == {"type": "string"}:
            text = " ".join([self._ask.topic, *prose.collect_sentences(self._ask)])
            return extract_keywords(text, number)
        return [self._fill_value(item, name, place, depth + 1) for place in range(number)]

    def _choose_option(self, options: list[Any]) -> Any:
        texts = [option for option in options if isinstance(option, str)]
        label = reading.choose_label(texts, self._material or self._ask.objective)
        return options[0] if label is None else label

    def _fill_number(self, schema: Schema, name: str, index: int, *, is_whole: bool) -> int | float:
        low: Any = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        limit: Any = schema.get("maximum", schema.get("exclusiveMaximum", inf))
        low = low if low <= limit else limit - 1  # a limit alone may be negative
        for value in [] if index or "multipleOf" in schema else self._find_numbers(name):
            if low < value < limit:
                return int(value) if is_whole else value
        high = limit if limit < inf else max(low, 0) + (10 if is_whole else 1)
        if not is_whole:
            return round(float(low + (high - low) * _SHARE), 3)
        step = int(schema.get("multipleOf", 1)) or 1
        last = ceil(high) - 1 if "exclusiveMaximum" in schema else int(high)
        number = min(int(low) + 1 + index, last)
        number += -number % step  # up to a multiple
        return number if number <= last else number - step

    def _find_numbers(self, name: str) -> list[float]:
        """Find a field's numbers in the text that the prompt is about."""
        if not self._material or not _is_field("count", name):
            return []
        values = reading.find_entities("price", self._material) if _is_field("price", name) else []
        values = values or reading.find_entities("number", self._material)
        digits = (re.sub(r"[^\d.]", "", value).strip(".") for value in values)
        plain = [number for number in digits if number.count(".") < 2]
        return [float(number) for number in plain if "year" not in name or len(number) == 4]

    def _fill_string(self, schema: Schema, name: str, index: int) -> str:
        form: str = schema.get("format", "")
        formats = reading.load_knowledge()["formats"]
        if form in formats:
            values = reading.find_entities(form, self._material) if form in _READ_FORMATS else []
            if form == "date":
                values = [day for day in map(reading.read_date, values) if day]
            return values[0] if values else str(formats[form])
        text = self._read_material(name, index) or self._write_prose(name, index)
        low, high = int(schema.get("minLength", 0)), int(schema.get("maxLength", 0))
        while len(text) < low:
            text = f"{text} {capitalize_first(self._ask.topic)}."
        if high and len(text) > high:
            cuts = (shorten_sentence(text, words) for words in range(len(text.split()), 0, -1))
            text = next((cut for cut in cuts if low <= len(cut) <= high), text[:high])
        return text

    def _read_material(self, name: str, index: int) -> str | None:
        """Read the value of a field from the text that the prompt is about."""
        if not self._material:
            return None
        if _is_field("mood", name):
            return reading.choose_label(_MOODS, self._material)
        values = reading.find_entities(name, self._material) if _is_field("name", name) else []
        return values[index % len(values)] if values else None

    def _write_prose(self, name: str, index: int) -> str:
        """Write the value of a field by its name; the items of a list take one sentence each."""
        if name in ("id", "key"):
            return f"item-{index + 1}"
        for pattern, write in _WRITERS.items():
            if re.search(pattern, name, re.I) and not index:
                return write(self._ask)
        return shorten_sentence(prose.choose_sentence(self._ask, index), _ITEM_WORDS)


def make_schema(fields: Sequence[str]) -> Schema:
    """Make a schema of some fields, whose types are guessed by their names."""
    types = {name: "integer" if _is_field("count", name) else "string" for name in fields}
    types |= {name: "array" for name in fields if name == "points"}
    members = {name: {"type": kind} for name, kind in types.items()}
    return {"type": "object", "properties": members, "required": [*members]}


# By a pattern of the field's name; the first matching pattern counts.
_WRITERS: dict[str, Callable[[ParsedPrompt], str]] = {
    r"^(?:topic|query|about)$": lambda ask: ask.topic,
    r"objective|goal": lambda ask: ask.objective,
    r"lang": lambda ask: ask.language,
    r"prompt": lambda ask: f"{capitalize_first(ask.topic)}, wide view, soft light",
    r"^name$|tag|keyword": lambda ask: capitalize_first(ask.topic),
    r"title|head|subject|tagline": prose.write_headline,
    r"summary|abstract|descri|text|body|content|answer|paragraph": lambda ask: (
        prose.write_paragraph(ask, 3)
    ),
}
