"""Progress as HTML, in the notebook's colours; external text is escaped."""

from collections.abc import Mapping
from datetime import datetime
from html import escape

from toolkit.display.progress.words import ProgressRow, choose_rows, format_headline
from toolkit.display.progress.work_progress import WorkProgress
from toolkit.display.records.html import render_reasoning
from toolkit.display.text import format_status
from toolkit.display.theme import STATE_COLOURS

MAX_LINE_CHARACTERS = 400  # of the end of a text, if there are other texts
CELL = "padding:1px 12px 1px 0;text-align:left;white-space:nowrap;vertical-align:top"
# If the host names no colours, mixtures of the text's own colour fit by day and by night.
QUIET = "color:var(--jp-ui-font-color2,color-mix(in srgb,currentColor 70%,transparent))"
GROUND = "background:var(--jp-border-color2,color-mix(in srgb,currentColor 18%,transparent))"


def escape_text(text: str) -> str:
    """Escape a text; in one element, a notebook would read two dollar signs as a formula.

    >>> escape_text("$1 of <$2>")
    '<span>$</span>1 of &lt;<span>$</span>2&gt;'
    """
    return escape(text).replace("$", "<span>$</span>")


def render_progress(work: WorkProgress, now: datetime) -> str:
    """Render the progress of work: headline, bar, node rows, and the texts being written."""
    count = sum(node.is_over for node in work.nodes.values())
    total = len(work.nodes)
    bar = ""
    if total > 1:
        bar = render_bar(count / total, "completed", f"{count} of {total}", width="100%")
    rows = "".join(_render_row(row, alone=work.is_single) for row in choose_rows(work, now))
    table = (
        f'<table style="margin:2px 0;border-collapse:collapse;min-width:40em">{rows}</table>'
        if rows
        else ""
    )
    return (
        f'<div class="toolkit-progress" style="max-width:60em">'
        f"<div>{escape_text(format_headline(work, now))}</div>{bar}{table}</div>"
    )


def render_thoughts(work: WorkProgress) -> str:
    """Render the reasoning of each node, folded."""
    return "".join(
        render_reasoning(node.reasoning, "" if work.is_single else node.id)
        for node in work.nodes.values()
    )


def render_line(line: str) -> str:
    """Render a line of a progress display."""
    return f'<div class="toolkit-progress">{escape_text(line)}</div>'


def _render_row(row: ProgressRow, *, alone: bool) -> str:
    bar = render_bar(row.part, row.status, row.status, width="9em")
    cells = [escape(row.name), escape(format_status(row.status)), bar, row.seconds, row.cost]
    columns = "".join(f'<td style="{CELL}">{cell}</td>' for cell in cells)
    note = f'<td style="{CELL};{QUIET};white-space:normal">{escape_text(row.note)}</td>'
    text_row = ""
    if row.text:
        text = row.text if alone else row.text[-MAX_LINE_CHARACTERS:]
        # The text fills the width that the other rows need, without adding to it.
        style = "white-space:pre-wrap;text-align:left;width:0;min-width:100%;padding-bottom:4px"
        text_row = f'<tr><td colspan="6"><div style="{style}">{escape_text(text)}</div></td></tr>'
    return f'<tr data-node="{escape(row.name)}">{columns}{note}</tr>{text_row}'


def render_bar(part: float | None, status: str, label: str, width: str) -> str:
    """Render a bar; the bar is hatched if the completed part is unknown."""
    fill, stroke = STATE_COLOURS.get(status, STATE_COLOURS["pending"])
    hatched = f"repeating-linear-gradient(45deg,{stroke} 0 4px,{fill} 4px 8px)"
    segment = _render_segment(1, hatched) if part is None else _render_segment(part, stroke)
    return _render_frame(segment, label, width)


def render_stacked_bar(shares: Mapping[str, float], label: str) -> str:
    """Render a bar in which each state has its share, from 0 to 1, in its colour."""
    segments = [_render_segment(share, STATE_COLOURS[s][1]) for s, share in shares.items()]
    return _render_frame("".join(segments), label, "100%")


def _render_segment(share: float, background: str) -> str:
    return f'<div style="width:{100 * share:.4g}%;height:100%;background:{background}"></div>'


def _render_frame(segments: str, label: str, width: str) -> str:
    return (
        f'<div role="img" aria-label="{escape(label)}" style="display:flex;width:{width};'
        f'height:6px;margin:6px 0;border-radius:3px;overflow:hidden;{GROUND}">{segments}</div>'
    )
