"""Collections of handles, shown in one line and as a table."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from pydantic import BaseModel

from toolkit.client._record_view import RecordView
from toolkit.client._wire.messages import RecordPage
from toolkit.contract.money import format_usd, sum_usd
from toolkit.contract.operations.queries import MAX_TOTAL
from toolkit.display.records import html
from toolkit.display.records.data_frame import export_arrow, to_arrow, to_data_frame, to_polars
from toolkit.display.records.inputs import describe_input
from toolkit.display.records.outline import build_section
from toolkit.display.records.text_table import format_table
from toolkit.display.text import format_cell, format_total

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


R = TypeVar("R", bound=BaseModel)
MAX_LISTED_ROWS, ROOM = 50, 120
H = TypeVar("H", bound=RecordView[Any])
COLUMNS = (
    "id", "name", "capability", "input", "version", "title", "fields", "objective", "status",
    "provider", "connection_type", "secret_ref", "media_type", "size_bytes", "cost_usd",
    "latency_ms", "tags", "note", "created_at", "variable", "set", "connected", "pool", "memory_gb",
    "size_gb", "data_center", "quality", "day", "connection_id", "agent_id", "key_id", "jobs",
    "failed", "cached", "calls",
)  # fmt: skip
LEFT_OUT_OF_RUNS = ("connection_id", "cached", "agent_id", "key_id")
MAX_ROWS = 25  # of a table that shows itself; `to_frame` has them all


class RecordList(list[R]):
    """A list of records of one kind, which a notebook shows as a table.

    Args:
        name: the word for many of them, as `attempts`.
    """

    def __init__(self, records: Iterable[R] = (), name: str = "records") -> None:
        super().__init__(records)
        self.name = name

    def to_frame(self) -> "pd.DataFrame":
        """Return the records as a table, one row each."""
        return to_data_frame(self)

    def _repr_html_(self) -> str:
        if not self:
            return f"<p>no {self.name}</p>"
        section = build_section(self._caption, self.name, self._dump())
        table = html.render_table(
            section.rows, section.columns, section.title, max_rows=MAX_LISTED_ROWS
        )
        return html.fit_cell(table)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        if cycle or not self:
            printer.text(f"<no {self.name}>")
            return
        section = build_section("", self.name, self._dump()[:MAX_LISTED_ROWS])
        rows = [[format_cell(c, row.get(c)) for c in section.columns] for row in section.rows]
        printer.text("\n".join(format_table(section.columns, rows, ROOM, "id")))
        if len(self) > MAX_LISTED_ROWS:
            printer.text(f"\n… and {len(self) - MAX_LISTED_ROWS} more")

    @property
    def _caption(self) -> str:
        return format_total(len(self), self.name)

    def _dump(self) -> list[dict[str, object]]:
        return [record.model_dump(mode="json", by_alias=True) for record in self]


class CollectionView(Generic[H]):
    """A collection of handles that displays itself as a table.

    Args:
        items: the handles that were read so far.
        kind: the word for many of them.
        model: the model of their records, so that an empty table has columns, too.
        total: number of all records of the list; None if it is unknown.
    """

    _is_filtered = False

    def __init__(
        self,
        items: Sequence[H],
        kind: str,
        model: type[BaseModel] | None = None,
        total: int | None = None,
    ) -> None:
        self._items = list(items)
        self._first = len(self._items)
        self._kind = kind
        self._model = model
        self.total = total

    @property
    def _has_more(self) -> bool:
        """Whether there are records that were not read yet."""
        return False

    @property
    def _has_unshown(self) -> bool:
        """Whether a display leaves out records of the list, whether they were read or not."""
        return False

    def __bool__(self) -> bool:
        return bool(self._items)

    def _ipython_key_completions_(self) -> list[str]:
        return [item.id for item in self._items if item.id]

    @property
    def _records(self) -> list[BaseModel]:
        return [item.record for item in self._items]

    @property
    def _costs(self) -> list[float]:
        return _list_costs(self._items)

    @property
    def _shown(self) -> list[H]:
        """The handles that a display covers: the first page, or all once all were read."""
        return self._items[: self._first] if self._has_more else self._items

    def _describe_count(self) -> str:
        count = len(self._shown)
        if not self._has_unshown:
            return format_total(count, self._kind)
        if self.total is not None:
            number = f"{self.total:,}"
        else:
            number = f"more than {count if self._is_filtered else MAX_TOTAL:,}"
        return f"{number} {self._kind}"

    def __repr__(self) -> str:
        facts: list[str] = []
        states = Counter(getattr(item.record, "status", None) for item in self._shown)
        if len(states) > 1:
            facts += [f"{states[s]} {s}" for s in sorted(states, key=str)]
        costs = _list_costs(self._shown)
        if costs:
            facts.append(format_usd(sum_usd(costs)))
        head, summary = self._describe_count(), ", ".join(facts)
        if self._has_unshown:
            first = f"the first {len(self._shown)}"
            return f"<{head}; {first}: {summary}>" if summary else f"<{head}; {first} are shown>"
        between = ": " if len(states) > 1 else ", "
        return f"<{head}{between}{summary}>" if summary else f"<{head}>"

    def _repr_html_(self) -> str:
        if not self._items:
            return f"<p>{escape(repr(self)[1:-1])}</p>"
        rows = [
            {**record, **describe_input(record)} for record in (i.to_dict() for i in self._shown)
        ]
        columns = [c for c in COLUMNS if any(row.get(c) not in (None, []) for row in rows)]
        if all(row.get("name") == row.get("id") for row in rows):
            columns = [c for c in columns if c != "name"]
        if "input" in columns:  # the page of a run has the rest
            columns = [c for c in columns if c not in LEFT_OUT_OF_RUNS]
        footer = ""
        if self._has_unshown:
            count = min(len(rows), MAX_ROWS)
            footer = "more" if self.total is None else f"{self.total - count:,} more"
        caption = repr(self)[1:-1]
        table = html.render_table(rows, columns, caption, max_rows=MAX_ROWS, remainder=footer)
        return html.fit_cell(table)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


class TableView(CollectionView[H]):
    """A collection that can be exported as a table; tables and sums cover all records."""

    def _read_to(self, count: int | None = None) -> None:
        """Do nothing, because all records are here; a paged list reads pages."""

    @property
    def cost_usd(self) -> float | None:
        """The sum of the known costs of all records in USD, or None if no cost is known."""
        self._read_to()
        return sum_usd(self._costs) if self._costs else None

    def to_frame(self) -> "pd.DataFrame":
        """Return all records as a table, one row each."""
        self._read_to()
        return to_data_frame(self._records, self._model)

    def to_polars(self) -> "pl.DataFrame":
        """Return all records as a polars table; nested values are JSON."""
        self._read_to()
        return to_polars(self._records, self._model)

    def to_arrow(self) -> "pa.Table":
        """Return all records as an Arrow table; nested values are JSON."""
        self._read_to()
        return to_arrow(self._records, self._model)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return an Arrow stream (the PyCapsule interface), by pyarrow or polars."""
        self._read_to()
        return export_arrow(self._records, requested_schema, self._model)

    def to_dict(self) -> list[dict[str, object]]:
        """Return all records as JSON values."""
        self._read_to()
        return [item.to_dict() for item in self._items]


class PagedBase(CollectionView[H]):
    """A collection that reads the pages of a list from the service as they are needed.

    Args:
        limit: greatest number of records; None for all.
        is_filtered: whether the list has filters.
    """

    def __init__(
        self, kind: str, model: type[BaseModel], limit: int | None, *, is_filtered: bool
    ) -> None:
        super().__init__((), kind, model)
        self._limit = limit
        self._is_filtered = is_filtered
        self._is_begun = False
        self._cursor: str | None = None
        self._is_cut = False

    def _keep_first_page(self, page: RecordPage[H]) -> None:
        """Keep the first page, unless another reader has read it meanwhile."""
        if not self._is_begun:
            self._is_begun = True
            self._items = list(page.records[: self._limit])
            self._first = len(self._items)
            self._is_cut = len(page.records) > len(self._items)
            self._cursor = page.next_cursor
            self.total = page.total

    def _keep_page(self, page: RecordPage[H], cursor: str | None) -> None:
        """Keep the page of a cursor, unless another reader has read it meanwhile."""
        if cursor == self._cursor:
            self._items += page.records
            self._cursor = page.next_cursor

    @property
    def _has_more(self) -> bool:
        is_full = self._limit is not None and len(self._items) >= self._limit
        return self._cursor is not None and not is_full

    @property
    def _has_unshown(self) -> bool:
        is_whole = self._cursor is None and not self._is_cut
        return not is_whole and (self.total is None or self.total > len(self._shown))


class AsyncPagedView(PagedBase[H], ABC):
    """The display of a list of the async client, which reads the first page when it is awaited."""

    def _begin(self) -> None:
        """Delay the first page until the list is first awaited."""

    def __bool__(self) -> bool:
        if not self._is_begun:
            raise TypeError("await the list first, as in `runs = await client.runs.list()`")
        return bool(self._items)

    def __repr__(self) -> str:
        return super().__repr__() if self._is_begun else f"<{self._kind}, to be awaited>"

    @abstractmethod
    async def _read_to(self, count: int | None = None) -> None:
        """Read pages until there are `count` records; None reads all pages."""

    @property
    async def cost_usd(self) -> float | None:
        """The sum of the known costs of all records in USD, or None if no cost is known."""
        await self._read_to()
        return sum_usd(self._costs) if self._costs else None

    async def to_frame(self) -> "pd.DataFrame":
        """Return all records as a table, one row each."""
        await self._read_to()
        return to_data_frame(self._records, self._model)

    async def to_polars(self) -> "pl.DataFrame":
        """Return all records as a polars table; nested values are JSON."""
        await self._read_to()
        return to_polars(self._records, self._model)

    async def to_arrow(self) -> "pa.Table":
        """Return all records as an Arrow table; nested values are JSON."""
        await self._read_to()
        return to_arrow(self._records, self._model)

    async def to_dict(self) -> list[dict[str, object]]:
        """Return all records as JSON values."""
        await self._read_to()
        return [item.to_dict() for item in self._items]


class PagedView(PagedBase[H], TableView[H], ABC):
    """The display of a list of the sync client, which reads the first page at once."""

    def _begin(self) -> None:
        """Read the first page, so that a wrong filter is rejected at once."""
        self._read_first_page()

    @abstractmethod
    def _read_first_page(self) -> Self:
        """Read the first page, unless it was read before."""

    @abstractmethod
    def count(self) -> int:
        """Return the number of records; the service may have to count them."""

    def __len__(self) -> int:
        return self.count()


class Collection(TableView[H]):
    """Several handles, all of them read: indexed by position and by id."""

    def __init__(self, items: Sequence[H], kind: str) -> None:
        super().__init__(items, kind, total=len(items))

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[H]:
        return iter(self._items)

    @overload
    def __getitem__(self, key: int | str) -> H: ...

    @overload
    def __getitem__(self, key: slice) -> list[H]: ...

    def __getitem__(self, key: int | str | slice) -> H | list[H]:
        if isinstance(key, str):
            handle = next((item for item in self._items if item.id == key), None)
            if handle is None:
                raise KeyError(key)
            return handle
        return self._items[key]


def _list_costs(items: Sequence[RecordView[Any]]) -> list[float]:
    costs = (getattr(item.record, "cost_usd", None) for item in items)
    return [cost for cost in costs if cost is not None]
