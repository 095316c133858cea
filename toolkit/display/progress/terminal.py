"""Progress in a terminal: rows that rich draws in place."""

from datetime import datetime
from typing import TextIO

from rich.bar import Bar
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from toolkit.display.progress.words import choose_rows, escape_line, format_headline
from toolkit.display.progress.work_progress import WorkProgress
from toolkit.display.text import format_status

COLOURS = {"completed": "green", "failed": "red", "running": "yellow"}
BAR_WIDTH = 16
MAX_LINE_CHARACTERS = 160  # of the end of a text that is being written


def open_live(stream: TextIO) -> Live:
    """Open rows on a terminal's screen that disappear when they are stopped."""
    console = Console(file=stream, highlight=False)
    live = Live(console=console, auto_refresh=False, transient=True)
    live.start()
    return live


def render_work(work: WorkProgress, now: datetime) -> RenderableType:
    """Render the progress of work: headline, a row for each node, and the texts being written."""
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    for _ in range(5):
        table.add_column(no_wrap=True)
    table.add_column(ratio=1, overflow="ellipsis", no_wrap=True)
    texts = []
    for row in choose_rows(work, now):
        colour = COLOURS.get(row.status, "default")
        part = 0.0 if row.part is None else row.part
        table.add_row(
            Text(escape_line(row.name)),
            Text(format_status(row.status), style=colour),
            Bar(1.0, 0.0, part, width=BAR_WIDTH, color=colour),
            row.seconds,
            row.cost,
            Text(escape_line(row.note), style="dim"),
        )
        written = row.text or (row.reasoning if row.status == "running" else "")
        if written:
            end = escape_line(" ".join(written[-MAX_LINE_CHARACTERS:].split()))
            style = "italic" if row.text else "dim"
            texts.append(Text(f"{row.name}: {end}", overflow="ellipsis", style=style))
    headline = Text(escape_line(format_headline(work, now)), style="bold")
    return Group(headline, table, *texts)
