"""HTML of the widgets; external text is escaped."""

import base64
import json
from collections.abc import Mapping, Sequence
from html import escape

from toolkit.client import Artifact
from toolkit.display import text
from toolkit.display.records.attempts import ShownArtifact
from toolkit.display.records.html import IGNORED_BY_MATHJAX

NUMBER_COLUMNS = ("_usd", "_ms", "score", "jobs", "failed", "cached", "calls", "attempts")
MAX_UNBROKEN_CHARACTERS = 40  # longest cell that stays on one line


def render_table(
    rows: Sequence[Mapping[str, object]],
    columns: Sequence[str],
    caption: str = "",
    ordered_by: str = "",
    descending: bool = False,
) -> str:
    """Render a table in the theme's colours, with its sort order marked for screen readers.

    A table that is too wide scrolls, also with the keyboard.

    >>> "<td>&lt;b&gt;</td>" in render_table([{"name": "<b>"}], ["name"])
    True
    """
    order = "descending" if descending else "ascending"
    head = "".join(
        f'<th scope="col"{f" aria-sort={order!r}" if column == ordered_by else ""}>'
        f"{escape(column.replace('_', ' '))}"
        f"{(' ▼' if descending else ' ▲') if column == ordered_by else ''}</th>"
        for column in columns
    )
    body = "".join(
        "<tr>" + "".join(_render_cell(column, row.get(column)) for column in columns) + "</tr>"
        for row in rows
    )
    return (
        f'<div class="tk-scroll" tabindex="0">'
        f'<table class="tk tk-rows {IGNORED_BY_MATHJAX}"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _render_cell(column: str, value: object) -> str:
    content = text.format_cell(column, value)
    kind = ""
    if column.endswith(NUMBER_COLUMNS):
        kind = ' class="tk-number"'
    elif len(content) > MAX_UNBROKEN_CHARACTERS:
        kind = ' class="tk-long"'
    return f"<td{kind}>{escape(content)}</td>"


def render_facts(pairs: Mapping[str, object]) -> str:
    """Render names and values in rows; unknown values are omitted."""
    rows = "".join(
        f'<tr><th scope="row">{escape(name.replace("_", " "))}</th>'
        f"<td>{escape(text.format_cell(name, value))}</td></tr>"
        for name, value in pairs.items()
        if value not in (None, "", [], {})
    )
    return f'<table class="tk {IGNORED_BY_MATHJAX}">{rows}</table>'


def render_line(pairs: Mapping[str, object]) -> str:
    """Render names and values on one line.

    >>> render_line({"cost_usd": 0.5})
    '<span><span class="tk-quiet">cost</span> $0.5</span>'
    """
    return " · ".join(
        f'<span><span class="tk-quiet">{escape(name.removesuffix("_usd").replace("_", " "))}</span>'
        f" {escape(text.format_cell(name, value))}</span>"
        for name, value in pairs.items()
    )


def render_literally(html: str) -> str:
    """Wrap HTML so that front ends do not typeset text between two dollar signs as a formula.

    >>> render_literally("$1 or $2")
    '<div class="mathjax_ignore tex2jax_ignore">$1 or $2</div>'
    """
    return f'<div class="{IGNORED_BY_MATHJAX}">{html}</div>'


def render_card(title: str, content: str) -> str:
    """Render some HTML under a title."""
    return f'<section class="tk-card"><h4>{escape(title)}</h4>{content}</section>'


def render_json(value: object) -> str:
    """Render a value as indented JSON."""
    return render_pre(json.dumps(value, indent=1, ensure_ascii=False, default=str))


def render_pre(content: str) -> str:
    """Render preformatted text; long text scrolls, also by keyboard."""
    return f'<pre tabindex="0">{escape(content)}</pre>'


def render_artifact(artifact: Artifact) -> str:
    """Render an artifact: a picture to see, a sound to hear, a text to read."""
    record = artifact.record
    size = f"{record.media_type}, {text.format_size(record.size_bytes)}"
    caption = f'<div class="tk-quiet">{escape(record.id)}: {escape(size)}</div>'
    if record.deleted or not artifact.is_small:
        return caption
    content = artifact.content()
    source = escape(f"data:{record.media_type};base64,{base64.b64encode(content).decode('ascii')}")
    kind = record.media_type.partition("/")[0]
    if kind == "image":
        return f'<img alt="{escape(record.id)}" src="{source}">{caption}'
    if kind == "audio":
        return f'<audio controls src="{source}"></audio>{caption}'
    return f"{render_pre(_read_text(record.media_type, content))}{caption}"


def read_shown_artifact(artifact: Artifact) -> ShownArtifact:
    """Read the content of an artifact for a comparison of attempts."""
    record = artifact.record
    is_text = record.media_type.startswith("text/") or record.media_type == "application/json"
    is_readable = is_text and artifact.is_small and not record.deleted
    document = _read_text(record.media_type, artifact.content()) if is_readable else None
    return ShownArtifact(record.id, render_artifact(artifact), record.sha256, document)


def _read_text(media_type: str, content: bytes) -> str:
    """Read a text for display: JSON with each member on a line."""
    document = content.decode("utf-8", "replace")
    if media_type != "application/json":
        return document
    try:
        return json.dumps(json.loads(document), indent=1, ensure_ascii=False)
    except (ValueError, RecursionError):  # not JSON, or nested deeper than Python reads
        return document
