"""Values of input fields from the measures of an objective, fitted to what the schema takes."""

import math
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

from toolkit.planning.reading.objective_reading import Measure
from toolkit.plugins import Capability

# Other names that a field for a property goes by.
_FIELD_NAMES: Mapping[str, tuple[str, ...]] = {
    "pace": ("speed", "rate", "tempo"),
    "theme": ("palette", "style"),
    "format": ("file_format", "output_format"),
    "language": ("lang", "locale"),
}
_PACES = {"slow": 0.8, "slower": 0.8, "normal": 1.0, "fast": 1.25, "faster": 1.25}
_RATIOS = {"square": 1.0, "portrait": 2 / 3, "landscape": 3 / 2}


def fill_measured_fields(
    capability: Capability, measures: Iterable[Measure], notes: dict[str, None]
) -> tuple[dict[str, object], tuple[Measure, ...]]:
    """Fill the fields that measures belong to, as their schema takes them.

    Args:
        capability: whose fields they are.
        measures: what the objective says of what it makes.
        notes: where a sentence goes for each value that had to be changed.

    Returns:
        the fields, and the measures that belong to none of them.
    """
    properties = describe_fields(capability.input_model)
    given: dict[str, object] = {}
    left, shapes = [], []
    for measure in measures:
        if measure.name == "shape" and {"width", "height"} <= set(properties):
            shapes.append(measure)
            continue
        name = find_field(properties, measure)
        value = None if name is None else fit_value(properties[name], measure.value)
        if name is None:
            left.append(measure)
        elif name in given and measure.name != name:
            continue  # "slowly, speed 0.7": what names the field says more
        elif value is None:
            notes[f"`{name}` of `{capability.id}` cannot be “{measure.value}”."] = None
        else:
            given[name] = value
            if isinstance(value, int | float) and value != _read_number(measure.value):
                note = f"`{name}` is {value}, the nearest to {measure.value} that it can be."
                notes[note] = None
    for shape in shapes:
        given |= _fill_size(properties, given, str(shape.value))
    return given, tuple(left)


def takes(capability: Capability, measures: Iterable[Measure]) -> bool:
    """Tell whether a capability has fields that take measures exactly as they are."""
    properties = describe_fields(capability.input_model)
    return all(
        (name := find_field(properties, measure)) is not None
        and fit_value(properties[name], measure.value) == measure.value
        for measure in measures
    )


def find_field(properties: Mapping[str, dict[str, Any]], measure: Measure) -> str | None:
    """Find the field that a measure belongs to: by its name, or by what it is described as.

    >>> find_field({"max_sources": {"type": "integer"}}, Measure("sources", 3))
    'max_sources'
    """
    names = (measure.name, *_FIELD_NAMES.get(measure.name, ()))
    exact = next((name for name in names if name in properties), None)
    if exact is not None or isinstance(measure.value, str):
        return exact
    unit = measure.name
    numeric = [name for name, field in properties.items() if is_numeric(field)]
    by_name = (name for name in numeric if unit in name.split("_"))
    by_text = (
        name for name in numeric if unit in str(properties[name].get("description", "")).split()
    )
    return next(by_name, None) or next(by_text, None)


def fit_value(field: Mapping[str, Any], value: float | str) -> object:
    """Fit a value to a field: the nearest number or choice that it takes; none if there is none.

    >>> fit_value({"type": "integer", "maximum": 1536, "multipleOf": 8}, 1000)
    1000
    >>> fit_value({"type": "integer", "maximum": 1536, "multipleOf": 8}, 2001)
    1536
    """
    if "enum" in field or "const" in field:
        return _choose(field, str(value))
    kind = field.get("type")
    if kind in {"integer", "number"}:
        number = _read_number(value)
        return None if number is None else _fit_number(field, number)
    if kind == "array" and isinstance(value, str):
        return [part.strip() for part in value.splitlines() if part.strip()]
    return value if kind == "string" and isinstance(value, str) else None


@cache
def describe_fields(model: type[BaseModel]) -> dict[str, dict[str, Any]]:
    """Describe the fields of an input, each by the schema of what it can be besides null."""
    schema = model.model_json_schema()
    described = {}
    for name, field in schema.get("properties", {}).items():
        ways = [way for way in field.get("anyOf", [field]) if way.get("type") != "null"]
        first = ways[0] if ways else {}
        target = schema.get("$defs", {}).get(str(first.get("$ref", "")).rpartition("/")[2], {})
        described[name] = {**field, **target, **first}
    return described


def _choose(field: Mapping[str, Any], value: str) -> str | None:
    choices = {str(one).lower(): str(one) for one in field.get("enum", [field.get("const")])}
    wanted = value.lower()
    named = field.get("x-names", {})
    return choices.get(wanted) or choices.get(str(named.get(wanted, "")).lower())


def _read_number(value: float | str) -> float | None:
    if not isinstance(value, str):
        return value if math.isfinite(value) else None
    return _PACES.get(value.lower())


def _fit_number(field: Mapping[str, Any], number: float) -> float | int:
    step = field.get("multipleOf")
    whole = field.get("type") == "integer"
    if step is None and whole:
        step = 1
    least, most = _find_limits(field, step)
    if step:
        number = round(number / step) * step
        least = None if least is None else math.ceil(least / step) * step
        most = None if most is None else math.floor(most / step) * step
    if most is not None:
        number = min(number, most)
    if least is not None:
        number = max(number, least)
    return int(number) if whole else float(number)


def _find_limits(field: Mapping[str, Any], step: float | None) -> tuple[float | None, float | None]:
    least, most = field.get("minimum"), field.get("maximum")
    over, under = field.get("exclusiveMinimum"), field.get("exclusiveMaximum")
    if least is None and over is not None:
        least = over + (step or 1e-6)
    if most is None and under is not None:
        most = under - (step or 1e-6)
    return least, most


def _fill_size(
    properties: Mapping[str, dict[str, Any]], given: Mapping[str, object], shape: str
) -> dict[str, object]:
    """Fill width and height of a shape: from the one that is given, else of the usual area."""
    ratio = _read_ratio(shape)
    if ratio is None or {"width", "height"} <= set(given):
        return {}
    width, height = given.get("width"), given.get("height")
    if isinstance(width, int | float):
        height = width / ratio
    elif isinstance(height, int | float):
        width = height * ratio
    else:
        usual = [properties[side].get("default") or 1024 for side in ("width", "height")]
        side = min(usual) if ratio == 1 else math.sqrt(usual[0] * usual[1])
        width, height = side * math.sqrt(ratio), side / math.sqrt(ratio)
    size = {"width": width, "height": height}
    return {name: fit_value(properties[name], value) for name, value in size.items()}


def _read_ratio(shape: str) -> float | None:
    if shape in _RATIOS:
        return _RATIOS[shape]
    first, _, second = shape.partition(":")
    try:
        ratio = float(first) / float(second)
    except (ValueError, ZeroDivisionError):
        return None
    return ratio if 0.01 < ratio < 100 else None


def is_numeric(field: Mapping[str, Any]) -> bool:
    """Tell whether a field holds a number, by its description."""
    return field.get("type") in {"integer", "number"} and "enum" not in field
