"""Inputs in a few words: the differences between runs, and the fields of capabilities."""

from collections.abc import Mapping

from toolkit.contract.jobs import FROM_ARTIFACTS
from toolkit.contract.workflows import FUNCTION_CAPABILITY
from toolkit.display.records.schema import list_fields
from toolkit.display.text import format_inline, truncate_line

MAX_INPUT_CHARACTERS = 80


def describe_input(record: Mapping[str, object]) -> dict[str, str | None]:
    """Describe the input of a run, or the input fields of a capability, as columns of a table.

    >>> describe_input({"input": {"objective": "Tides", "max_tokens": 60}, "capability": "x"})
    {'input': 'Tides, max tokens: 60'}
    >>> called = {"function": "clean", "arguments": {"limit": 5}}
    >>> describe_input({"input": called, "capability": "function.call@1"})
    {'input': 'clean(limit=5)'}
    """
    schema = record.get("input_schema")
    if isinstance(schema, Mapping):
        rows = (row for row in list_fields(schema) if "." not in str(row["field"]))
        names = (f"{row['field']}{'' if row['required'] else '?'}" for row in rows)
        return {"fields": ", ".join(names), "input": None}
    fields = record.get("input")
    if not isinstance(fields, Mapping) or "capability" not in record:
        return {}
    if record["capability"] == FUNCTION_CAPABILITY:
        arguments = fields.get("arguments")
        plain = arguments if isinstance(arguments, Mapping) else {}
        text = ", ".join(f"{name}={format_inline(value)}" for name, value in plain.items())
        return {"input": truncate_line(f"{fields.get('function')}({text})", MAX_INPUT_CHARACTERS)}
    members = [(k, v) for k, v in fields.items() if k != FROM_ARTIFACTS]
    # The main field comes first and needs no name.
    words = [
        format_inline(value) if n == 0 else f"{str(name).replace('_', ' ')}: {format_inline(value)}"
        for n, (name, value) in enumerate(members)
    ]
    return {"input": truncate_line(", ".join(words), MAX_INPUT_CHARACTERS)}
