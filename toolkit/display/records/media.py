"""The display of an artifact's bytes in a notebook: a picture, a player, a table, a text."""

import base64
import json
from collections.abc import Mapping
from html import escape

from toolkit.contract.artifacts import TABLE_MEDIA_TYPE
from toolkit.display.records import html
from toolkit.display.records.markdown import render_markdown
from toolkit.display.text import format_size

MAX_ROWS, MAX_COLUMNS, MAX_TEXT_CHARACTERS = 20, 12, 4_000
# Hostile JSON may be nested deeper than Python can read.
UNREADABLE_ERRORS = (ValueError, RecursionError)


def build_mime_bundle(media_type: str, data: bytes, name: str) -> dict[str, str]:
    """Build the MIME bundle of some bytes without plain text; empty if they cannot be shown.

    SVG becomes an image, so that none of its scripts run.
    """
    encoded = base64.b64encode(data).decode("ascii")
    source = escape(f"data:{media_type};base64,{encoded}")
    if media_type in ("image/png", "image/jpeg"):
        return {media_type: encoded}
    if media_type.startswith("image/"):
        return {"text/html": f'<img alt="{escape(name)}" style="max-width:100%" src="{source}">'}
    if media_type.startswith("audio/"):
        label = escape(f"{name}, {format_size(len(data))}")
        return {"text/html": f'<audio controls aria-label="{label}" src="{source}"></audio>'}
    if media_type in ("application/json", TABLE_MEDIA_TYPE):
        return {"text/html": _render_json(data, name)}
    if media_type == "text/markdown":
        return {"text/html": render_markdown(data.decode("utf-8", "replace"))}
    if media_type.startswith("text/"):
        return {"text/html": _render_text(data.decode("utf-8", "replace"))}
    return {}


def to_rows(value: object) -> list[Mapping[str, object]]:
    """Return the rows of a JSON table, or an empty list for other values.

    A table is a list of objects, an object of equally long lists, or either as `data` of a schema.

    >>> to_rows([{"a": 1}]), to_rows({"a": [1, 2]}), to_rows([1])
    ([{'a': 1}], [{'a': 1}, {'a': 2}], [])
    """
    if isinstance(value, Mapping) and value.keys() == {"schema", "data"}:
        value = value["data"]
    if isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
        return value
    if not isinstance(value, Mapping) or not all(isinstance(v, list) for v in value.values()):
        return []
    if len({len(column) for column in value.values()}) != 1:
        return []
    return [dict(zip(value, row, strict=True)) for row in zip(*value.values(), strict=True)]


def _render_json(data: bytes, name: str) -> str:
    try:
        value = json.loads(data)
        spelled = json.dumps(value, indent=2, ensure_ascii=False)
    except UNREADABLE_ERRORS:
        return _render_text(data.decode("utf-8", "replace"))
    rows = to_rows(value)
    if rows:
        columns = list(dict.fromkeys(str(key) for row in rows for key in row))
        caption = f"{name}: {len(rows)} rows, {len(columns)} columns"
        return html.render_table(rows, columns[:MAX_COLUMNS], caption, max_rows=MAX_ROWS)
    if isinstance(value, Mapping) and not any(isinstance(v, Mapping) for v in value.values()):
        return html.render_facts(name, {str(key): content for key, content in value.items()})
    return _render_text(spelled)


def _render_text(text: str) -> str:
    surplus = len(text) - MAX_TEXT_CHARACTERS
    end = f"\n… and {surplus} characters more" if surplus > 0 else ""
    style = "white-space:pre-wrap;overflow-wrap:anywhere;word-break:normal;max-width:80ch;margin:0"
    return f'<pre style="{style}">{escape(text[:MAX_TEXT_CHARACTERS])}{end}</pre>'
