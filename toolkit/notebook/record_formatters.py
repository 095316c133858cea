"""The display of plain records in IPython: facts, and a table for each list, not one line."""

from typing import TYPE_CHECKING, Any

from toolkit.contract.errors import ToolkitError
from toolkit.display.records import html
from toolkit.display.records.outline import outline_record
from toolkit.display.records.text_table import format_facts, format_table
from toolkit.display.text import format_cell

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from toolkit.client import Client
    from toolkit.contract.base import Record

ROOM = 110  # characters of a line
RECORD = ("toolkit.contract.base", "Record")
CLIENT = ("toolkit.client._sync.client", "Client")


def render_record(record: "Record") -> str:
    """Render a record of the API as an HTML table of its fields."""
    facts = record.model_dump(mode="json", by_alias=True)
    title = f"{type(record).__name__} {facts.pop('id', '')}".strip()
    return html.fit_cell(html.render_facts(title, facts))


def print_record(record: "Record", printer: Any, cycle: bool) -> None:
    """Write a record of the API as text to the pretty printer of IPython."""
    if cycle:
        printer.text("…")
        return
    facts, sections = outline_record(record.model_dump(mode="json", by_alias=True))
    lines = [type(record).__name__, *format_facts(list(facts.items()), ROOM)]
    for section in sections:
        rows = [[format_cell(c, row.get(c)) for c in section.columns] for row in section.rows]
        lines += ["", section.title, *format_table(section.columns, rows, ROOM, "id")]
    printer.text("\n".join(lines))


def render_client(client: "Client") -> str | None:
    """Render a client's address and spending; return None if its service is away."""
    try:
        return client.info()._repr_html_()
    except ToolkitError:
        return None


def attach_formatters(shell: "InteractiveShell") -> None:
    """Display records readably in a shell; types are registered by name, so none is imported."""
    if shell.display_formatter is None:
        return
    formatters = shell.display_formatter.formatters
    formatters["text/html"].for_type_by_name(*RECORD, render_record)
    formatters["text/html"].for_type_by_name(*CLIENT, render_client)
    formatters["text/plain"].for_type_by_name(*RECORD, print_record)
