"""A filler of JSON schemas with values from a prompt, so that replies are valid and sensible."""

import re
from typing import Any

from toolkit.sandbox.text import answers, node_planning, prose, reading
from toolkit.sandbox.text.prompts import ParsedPrompt
from toolkit.sandbox.text.sentences import (
    capitalize_first,
    close_sentence,
    count_spaced_words,
    extract_stems,
    select_best,
    shorten_sentence,
)

Schema = dict[str, Any]

_PREFERRED = ("pass", "ok", "approve", "approved", "accept", "neutral", "info", "none", "en")
_TITLE = re.compile(r"title|headline|heading|^name$|subject|tagline", re.I)
_SHORT = re.compile(r"teaser|hook|subtitle|caption|line|label|one_?liner|slogan|reason|note", re.I)
_TAGS = re.compile(r"tag|keyword|term|categor", re.I)
_PROBLEMS = re.compile(r"issue|error|warning|problem|missing|concern", re.I)
_MOOD = re.compile(r"mood|sentiment|emotion|feeling|tone", re.I)
_NAMED = re.compile(r"name|person|people|author|customer|sender|city|place|location|organi", re.I)
_COUNTED = re.compile(
    r"price|amount|total|cost|quantit|number|year|age|count|guests|people|population|temperature|"
    r"distance|height|weight|length|rooms|days|hours",
    re.I,
)
_MOODS = {1: "happy", 0: "neutral", -1: "annoyed"}
_MAX_DEPTH = 24


class SchemaFiller:
    """A filler of one schema for one prompt."""

    def __init__(self, schema: Schema, ask: ParsedPrompt, prompt: str) -> None:
        self._root = schema
        self._ask = ask
        self._prompt = prompt
        self._sentences = prose.collect_sentences(ask)
        self._material = answers.find_material(ask)

    def fill_schema(self) -> Any:
        """Return the whole reply."""
        return self._fill_value(self._root, "", 0, 0)

    def _resolve_schema(self, schema: Schema) -> Schema:
        seen = 0
        while "$ref" in schema and seen < _MAX_DEPTH:
            node: Any = self._root
            for part in str(schema["$ref"]).lstrip("#/").split("/"):
                node = node.get(part, {}) if isinstance(node, dict) and part else node
            schema = {**node, **{k: v for k, v in schema.items() if k != "$ref"}}
            seen += 1
        for part in schema.get("allOf", []):
            resolved = self._resolve_schema(part)
            merged = {**schema.get("properties", {}), **resolved.get("properties", {})}
            needed = [*schema.get("required", []), *resolved.get("required", [])]
            schema = {**schema, **resolved}
            if merged:
                schema |= {"properties": merged, "required": needed}
        return schema

    def _fill_value(self, schema: Any, name: str, index: int, depth: int) -> Any:
        if not isinstance(schema, dict):
            return self._fill_string({}, name, index)
        schema = self._resolve_schema(schema)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return self._choose_option(schema["enum"])
        for key in ("anyOf", "oneOf"):
            if schema.get(key):
                options = [self._resolve_schema(option) for option in schema[key]]
                real = [o for o in options if o.get("type") != "null"]
                wanted = options[0] if depth > _MAX_DEPTH or not real else real[0]
                return self._fill_value(wanted, name, index, depth)
        return self._fill_typed(schema, name, index, depth)

    def _fill_typed(self, schema: Schema, name: str, index: int, depth: int) -> Any:
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((one for one in kind if one != "null"), "null")
        if kind is None:
            kind = (
                "object" if "properties" in schema else "array" if "items" in schema else "string"
            )
        if kind == "object":
            return self._fill_object(schema, index, depth)
        if kind == "array":
            return self._fill_array(schema, name, depth)
        if kind in ("number", "integer"):
            whole = kind == "integer"
            found = self._find_number(schema, name, whole=whole) if not index else None
            return self._fill_number(schema, index, whole=whole) if found is None else found
        if kind == "boolean":
            if self._material and reading.knows_label(name):
                return reading.is_about(name, self._material)
            return not _PROBLEMS.search(name)
        return None if kind == "null" else self._fill_string(schema, name, index)

    def _fill_object(self, schema: Schema, index: int, depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        required = schema.get("required", [])
        names = required if depth >= 8 else list(dict.fromkeys([*properties, *required]))
        filled = {}
        for key in names:
            if key not in required and self._may_be_null(properties.get(key, {})):
                continue
            filled[key] = self._fill_value(properties.get(key, {}), key, index, depth + 1)
        return filled

    def _may_be_null(self, schema: Any) -> bool:
        # An optional value that may be null is most truthfully left out.
        options = schema.get("anyOf", []) if isinstance(schema, dict) else []
        return any(isinstance(one, dict) and one.get("type") == "null" for one in options)

    def _fill_array(self, schema: Schema, name: str, depth: int) -> list[Any]:
        low, high = int(schema.get("minItems", 0)), int(schema.get("maxItems", 1000))
        item = (
            self._resolve_schema(schema["items"]) if isinstance(schema.get("items"), dict) else {}
        )
        if "capability" in item.get("properties", {}):
            options = self._resolve_schema(item["properties"]["capability"]).get("enum", [])
            nodes = node_planning.plan_nodes(self._ask, self._prompt, options)[: max(high, 1)]
            blanks = (self._fill_value(item, name, place, depth + 1) for place in range(len(nodes)))
            return [
                node_planning.merge_node(blank, node)
                for blank, node in zip(blanks, nodes, strict=True)
            ]
        wanted = (
            0 if _PROBLEMS.search(name) and self._covers_objective() else (self._ask.bullets or 3)
        )
        number = 0 if depth > _MAX_DEPTH else max(low, min(wanted, high))
        if item.get("enum"):
            spread = list(item["enum"]) * (low + 1)
            return spread[: max(low, min(1, high, number))]
        if _TAGS.search(name) and item.get("type", "string") == "string":
            found = prose.choose_tags(self._ask, number)
            if len(found) >= low:
                return found
        return [self._fill_value(item, name, place, depth + 1) for place in range(number)]

    def _measure_coverage(self) -> float:
        """Measure how much of the objective comes back in the rest of the prompt."""
        wanted = extract_stems(self._ask.topic)
        rest = extract_stems(self._prompt.replace(self._ask.objective, " "))
        return len(wanted & rest) / len(wanted) if wanted and rest else 1.0

    def _covers_objective(self) -> bool:
        return self._measure_coverage() >= 0.5

    def _choose_option(self, options: list[Any]) -> Any:
        if "pass" in options and not self._covers_objective():
            return next((one for one in ("retry", "fail") if one in options), options[0])
        for wanted in _PREFERRED:
            if wanted in options:
                return wanted
        texts = [o for o in options if isinstance(o, str)]
        label = reading.choose_label(texts, self._material or self._ask.objective)
        if label is not None:
            return label
        text = extract_stems(self._ask.objective)
        return next(
            (o for o in options if isinstance(o, str) and extract_stems(o) & text), options[0]
        )

    def _find_number(self, schema: Schema, name: str, *, whole: bool) -> int | float | None:
        """Find the number that a field asks for in the text it is about."""
        if not self._material or not _COUNTED.search(name):
            return None
        kind = "price" if re.search(r"price|amount|total|cost", name, re.I) else "number"
        found = reading.find_entities(kind, self._material)
        found = found or reading.find_entities("number", self._material)
        if re.search(r"year", name, re.I):
            found = [one for one in found if len(one) == 4]
        low, high = schema.get("minimum", float("-inf")), schema.get("maximum", float("inf"))
        for one in found:
            value = reading.read_number(one)
            if low <= value <= high and (not whole or value.is_integer()):
                return int(value) if whole else value
        return None

    def _fill_number(self, schema: Schema, index: int, *, whole: bool) -> int | float:
        low = schema.get("minimum", schema.get("exclusiveMinimum"))
        high = schema.get("maximum", schema.get("exclusiveMaximum"))
        if whole:
            floor = int(low) + ("exclusiveMinimum" in schema) if low is not None else 0
            ceiling = int(high) - ("exclusiveMaximum" in schema) if high is not None else floor + 9
            step = int(schema.get("multipleOf", 1)) or 1
            value = max(floor, min(floor + 1 + index, ceiling))
            return -(-value // step) * step
        start = float(low) if low is not None else 0.0
        end = float(high) if high is not None else max(1.0, start + 1.0)
        return round(start + (end - start) * (0.35 + 0.57 * self._measure_coverage()), 3)

    def _fill_string(self, schema: Schema, name: str, index: int) -> str:
        fixed = self._fill_formatted(schema, name, index)
        if fixed is not None:
            return fixed
        low, high = int(schema.get("minLength", 0)), schema.get("maxLength")
        text = self._write_prose(name, index)
        while len(text) < low:
            text = f"{text} {close_sentence(capitalize_first(self._ask.topic))}"
        if high is not None and len(text) > int(high):
            text = _clip_text(text, int(high), low)
        return text

    def _fill_formatted(self, schema: Schema, name: str, index: int) -> str | None:
        formats = {
            "date": "2026-11-20",
            "date-time": "2026-11-20T12:00:00Z",
            "time": "12:00:00Z",
            "email": "reader@example.org",
            "uri": "https://sandbox.invalid/",
            "url": "https://sandbox.invalid/",
            "uuid": "00000000-0000-4000-8000-000000000000",
        }
        told = self._find_formatted(str(schema.get("format", "")))
        if told is not None:
            return told
        if schema.get("format") in formats:
            return formats[schema["format"]]
        if schema.get("pattern"):
            return _match_pattern(str(schema["pattern"]), self._ask.topic, index)
        return f"item-{index + 1}" if name in ("id", "node_id", "key") else None

    def _find_formatted(self, form: str) -> str | None:
        """Find a date or an address in the text that the prompt is about."""
        kind = {"date": "date", "email": "email", "uri": "url", "url": "url"}.get(form)
        found = reading.find_entities(kind, self._material) if kind else []
        if kind == "date":
            found = [day for day in map(reading.read_date, found) if day is not None]
        return found[0] if found else None

    def _read_material(self, name: str, index: int) -> str | None:
        """Read what a field asks for from the text that the prompt is about."""
        if not self._material:
            return None
        if _MOOD.search(name):
            mood = reading.measure_sentiment(self._material)
            return _MOODS[(mood > 0) - (mood < 0)]
        if _NAMED.search(name) or re.search(r"date|e-?mail|phone", name, re.I):
            found = reading.find_entities(name, self._material)
            return found[index % len(found)] if found else None
        return None

    def _write_prose(self, name: str, index: int) -> str:
        ask, sentences = self._ask, self._sentences
        told = self._read_material(name, index)
        if told is not None:
            return told
        if re.fullmatch(r"topic|query|about", name, re.I):
            return ask.topic
        if re.search(r"objective|goal", name, re.I):
            return ask.objective
        if re.search(r"lang", name, re.I):
            return ask.language
        if re.search(r"prompt", name, re.I):
            return f"{capitalize_first(ask.topic)}, wide view, soft light, clean composition"
        if _TAGS.search(name):
            return (prose.choose_tags(ask, index + 1) or [ask.topic])[-1]
        if name.casefold() == "name" and index == 0:
            return capitalize_first(ask.topic)
        if _TITLE.search(name) and index == 0:
            return prose.write_headline(ask, sentences)
        chosen = select_best(sentences, max(index + 1, 4), ask.topic)
        if _SHORT.search(name) or _TITLE.search(name) or index:
            return (
                shorten_sentence(chosen[index % len(chosen)], 20)
                if chosen
                else close_sentence(ask.topic)
            )
        if re.search(r"summary|abstract|descri|text|body|content|answer|paragraph", name, re.I):
            return prose.write_text(ask) if ask.words or ask.sentences else prose.write_summary(ask)
        return shorten_sentence(prose.choose_lead(ask, sentences), 24)


def guess_type(name: str) -> str:
    """Guess the JSON type of a field by its name.

    >>> guess_type("population"), guess_type("title")
    ('integer', 'string')
    """
    return "integer" if _COUNTED.search(name) else "string"


def _clip_text(text: str, high: int, low: int) -> str:
    size = count_spaced_words(text)
    while size > 1:
        size -= 1
        shorter = shorten_sentence(text, size)
        if len(shorter) <= high:
            return shorter if len(shorter) >= low else text[:high]
    return text[:high]


def _match_pattern(pattern: str, topic: str, index: int) -> str:
    """Return a string that matches a pattern, from among usual forms, or the plainest one."""
    slug = re.sub(r"[^a-z0-9]+", "-", topic.lower()).strip("-") or "item"
    under = slug.replace("-", "_")
    usual = [
        f"{slug}-{index + 1}", f"{under}_{index + 1}", slug, under, f"n{index + 1}", f"a{index}",
        str(index + 1), "2026-11-20", "#2a6f97", "en", "en-GB", "A", "a", "1.0", "1.0.0",
        capitalize_first(topic), slug.upper(), "00:01:30", "image.generate", "AB12",
        "abc123",
    ]  # fmt: skip
    try:
        return next((text for text in usual if re.search(pattern, text)), slug)
    except re.error:
        return slug
