"""The texts in the input of a record, which a search looks through."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

from pydantic_core import from_json


def has_text(doc: str, kind: str, text: str) -> bool:
    """Return whether a text, in lower case, stands in the input that a record's document has.

    >>> has_text('{"input": {"objective": "On Tides"}, "output": {"text": "Salt"}}', "run", "tides")
    True
    >>> has_text('{"input": {"objective": "On Tides"}, "output": {"text": "Salt"}}', "run", "salt")
    False
    """
    # JSON has these characters as they are, so most documents need not be parsed.
    if is_plain(text) and text not in doc.casefold():
        return False
    return any(text in candidate for candidate in iter_folded_texts(doc, kind))


def iter_folded_texts(doc: str, kind: str) -> Iterator[str]:
    """Yield each text in the input that a record's document has, casefolded."""
    return (text.casefold() for text in _iter_texts(_INPUTS[kind](from_json(doc))))


@lru_cache(maxsize=8)  # a search asks it of every row
def is_plain(text: str) -> bool:
    """Return whether a text stands in a JSON document just as it is, wherever it stands there."""
    return text.isascii() and text.isprintable() and not set(text) & {'"', "\\", "/"}


_INPUTS: Final[dict[str, Callable[[dict[str, Any]], object]]] = {
    "run": lambda record: record.get("input"),
    "agent_run": lambda record: (record.get("agent") or {}).get("input"),
    "workflow": lambda record: [
        record.get("name"),
        [node.get("input") for node in record.get("nodes") or ()],
    ],
    "task": lambda record: record.get("objective"),
}


def _iter_texts(value: object) -> Iterator[str]:
    """Yield every text in a JSON value; the names of members are none."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from _iter_texts(member)
    elif isinstance(value, list):
        for item in value:
            yield from _iter_texts(item)
