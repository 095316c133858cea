"""Lists of records that show themselves as a table."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from toolkit.display.records import html
from toolkit.display.records.data_frame import to_data_frame
from toolkit.display.records.outline import build_section
from toolkit.display.records.text_table import format_table
from toolkit.display.text import format_cell, format_total

if TYPE_CHECKING:
    import pandas as pd

R = TypeVar("R", bound=BaseModel)
MAX_ROWS, ROOM = 50, 120


class RecordList(list[R]):
    """A list of records of one kind.

    Args:
        records: the records.
        name: the word for many of them, as `attempts`.
    """

    def __init__(self, records: Iterable[R] = (), name: str = "records") -> None:
        super().__init__(records)
        self.name = name

    def to_frame(self) -> "pd.DataFrame":
        """Return them as a table, one row each."""
        return to_data_frame(self)

    def _repr_html_(self) -> str:
        if not self:
            return f"<p>no {self.name}</p>"
        section = build_section(self._caption, self.name, self._dump())
        table = html.render_table(section.rows, section.columns, section.title, max_rows=MAX_ROWS)
        return html.fit_cell(table)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        if cycle or not self:
            printer.text(f"<no {self.name}>")
            return
        section = build_section("", self.name, self._dump()[:MAX_ROWS])
        rows = [[format_cell(c, row.get(c)) for c in section.columns] for row in section.rows]
        printer.text("\n".join(format_table(section.columns, rows, ROOM, "id")))
        if len(self) > MAX_ROWS:
            printer.text(f"\n… and {len(self) - MAX_ROWS} more")

    @property
    def _caption(self) -> str:
        return format_total(len(self), self.name)

    def _dump(self) -> list[dict[str, object]]:
        return [record.model_dump(mode="json", by_alias=True) for record in self]
