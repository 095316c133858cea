"""The output of commands, and the client that they use."""

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from pydantic import BaseModel

    from toolkit.cli.target import Target
    from toolkit.client import Client, RecordView

    Printable: TypeAlias = RecordView[Any] | BaseModel | dict[str, Any]

PAGE_SIZE = 200  # items of a page
MAX_INPUT_CHARACTERS = 60  # in a list, to recognize the input by
UNLIMITED_WIDTH = 10_000  # columns, if a program reads: one row is one line
_CONTROLS = {code: f"\\u{code:04x}" for code in (*range(32), *range(127, 160))}
_UNESCAPED = {code: escape for code, escape in _CONTROLS.items() if code > 31}


def escape_controls(text: str) -> str:
    """Return a vendor's text on one line, without characters that control the terminal.

    >>> escape_controls("a\\x1b[2Jb")
    'a\\\\u001b[2Jb'
    """
    return text.translate(_CONTROLS)


def print_json(value: object, indent: int | None = 2) -> None:
    """Print a value as JSON, without characters that control the terminal."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    print(text.translate(_UNESCAPED), flush=True)


def print_note(text: str) -> None:
    """Print a note for the reader on stderr, because it is no result."""
    print(escape_controls(text), file=sys.stderr, flush=True)


class Output:
    """The output of a command: results on stdout, the rest on stderr."""

    as_json: bool

    def print_record(self, thing: "Printable", rows: str = "", columns: Sequence[str] = ()) -> None:
        """Print one record: its facts, and below them its lists and schemas as tables.

        Args:
            rows: the list of records in it that comes first.
        """
        record = _to_record(thing)
        if self.as_json:
            self.print_json(record)
            return
        from toolkit.display.records.outline import outline_record
        from toolkit.display.records.text_table import format_facts

        facts, sections = outline_record(record)
        cells = [(name, escape_controls(value)) for name, value in facts.items()]
        print("\n".join(format_facts(cells, measure_width())))
        for section in sorted(sections, key=lambda section: section.title != rows):
            print(f"\n{section.title}")
            names = columns if section.title == rows else section.columns
            print_rows(section.rows, names)

    def print_table(
        self,
        things: "Iterable[Printable]",
        columns: Sequence[str],
        row: Callable[[dict[str, Any]], dict[str, Any]] = dict,
    ) -> None:
        """Print several records, a row for each.

        Args:
            row: a function that makes the values of the columns from a record.
        """
        records = [_to_record(thing) for thing in things]
        if self.as_json:
            self.print_json(records)
        elif records:
            print_rows([row(record) for record in records], columns)
        else:
            self.print_note("There are none.")

    print_json = staticmethod(print_json)
    print_note = staticmethod(print_note)


@dataclass(frozen=True)
class ClientOutput(Output):
    """The output of a command, and its client."""

    client: "Client"
    as_json: bool = False
    target: "Target | None" = None

    def read(self, path: str, **params: str | int | None) -> Any:
        """Read a path of the service as plain JSON, because output needs no record.

        Args:
            params: query parameters; parameters of None are left out.
        """
        query = {name: value for name, value in params.items() if value is not None}
        return self.client.read(path, query)

    def print_items(
        self,
        path: str,
        columns: Sequence[str],
        row: Callable[[dict[str, Any]], dict[str, Any]] = dict,
    ) -> None:
        """Print a list that the service answers at once."""
        self.print_table(self.read(path)["items"], columns, row)

    def print_newest(
        self,
        path: str,
        columns: Sequence[str],
        limit: int | None = None,
        **filters: str | int | None,
    ) -> None:
        """Print the newest items of a list, and the total number of items.

        Args:
            limit: maximum number of items. Default: None, all.
            filters: filters of the list; a filter of None is ignored.
        """
        size = PAGE_SIZE if limit is None else min(limit + 1, PAGE_SIZE)
        page = self.read(path, limit=size, **filters)
        total, items = page.get("total"), list(page["items"])
        while page["next_cursor"] is not None and (limit is None or len(items) <= limit):
            page = self.read(path, limit=size, cursor=page["next_cursor"], **filters)
            items += page["items"]
        self.print_table(items[:limit], columns)
        if limit is not None and len(items) > limit:
            count = "There are more records" if total is None else f"{limit} of {total:,} are shown"
            self.print_note(f"{count}: use --all, or a higher --limit.")


def _to_record(thing: "Printable") -> dict[str, Any]:
    if isinstance(thing, dict):
        return thing
    from pydantic import BaseModel

    if isinstance(thing, BaseModel):
        return thing.model_dump(mode="json", by_alias=True)
    return thing.to_dict()


def print_rows(records: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Print records as a table, the columns in their order."""
    from toolkit.display.records.text_table import format_table

    head = [name.replace("_", " ") for name in columns]
    rows = [[_format_cell(name, record.get(name)) for name in columns] for record in records]
    # Ids are never truncated: people copy them.
    print("\n".join(format_table(head, rows, measure_width(), uncut_column="id")))


def _format_cell(name: str, value: object) -> str:
    from toolkit.display.text import format_cell, truncate_line

    text = format_cell(name, value)
    return escape_controls(truncate_line(text, MAX_INPUT_CHARACTERS) if name == "input" else text)


def measure_width() -> int:
    """Measure the width of a line in cells; unlimited if a program reads the output."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else UNLIMITED_WIDTH
