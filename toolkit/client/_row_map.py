"""The rows of one call of `client.map`, and the state of each row."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from pydantic import BaseModel

from toolkit.client._client_state import ClientState
from toolkit.client._definition_views import ArtifactView
from toolkit.client._map_view import read_result, show_result
from toolkit.client._options import collect_options
from toolkit.client._output_model import add_output_schema
from toolkit.client._row_results import (
    NOT_BEGUN,
    STOPPED,
    RowResult,
    make_map_key,
    split_pages,
)
from toolkit.client._row_tables import Library, RowTable, build_frame, read_rows
from toolkit.client._wait_interruption import explain_interrupt
from toolkit.client._wire.messages import drop_none, make_annotation
from toolkit.contract.collector_pause import pause_collector
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.ids import Prefix, is_id
from toolkit.contract.maps import MapRecord, MapRow, MapRowNumbers, MapRowPage
from toolkit.contract.row_templates import check_columns, digest_row, list_columns, to_cell
from toolkit.contract.run_options import RunOptions
from toolkit.display.progress.row_progress import RowProgress

if TYPE_CHECKING:
    import pandas as pd

D = TypeVar("D")  # a DataFrame; in the async client, a coroutine that returns one


class RowMap(ABC, Generic[D]):
    """The rows of one call of `client.map`, and the state of each row.

    Args:
        name, rows, options, output_model: as for `client.map`, and so are the other arguments.
            The attribute `rows` has the cells that are sent.
        part: name of a part of a cascade, whose map is not that of a call without a cascade.
        fields: input of the capability, with templates among its texts.

    Raises:
        RequestError: `INVALID_REQUEST` for an unknown column.
        ValueError: for another wrong argument.
    """

    def __init__(
        self,
        http: ClientState,
        name: str,
        rows: object,
        fields: Mapping[str, object],
        options: RunOptions | None,
        output_model: type[BaseModel] | None,
        max_cost_usd: float | None,
        concurrency: int,
        on_error: Literal["stop", "continue"] | int,
        tags: Sequence[str] | None,
        note: str | None,
        *,
        sealed: bool,
        progress: bool,
        part: str = "",
    ) -> None:
        is_number = isinstance(on_error, int) and not isinstance(on_error, bool) and on_error > 0
        if not is_number and on_error not in ("stop", "continue"):
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f'on_error is "stop", "continue" or a number of rows, not {on_error!r}.',
            )
        self.source = _find_source(rows)
        table = RowTable([], []) if self.source is not None else read_rows(rows)
        templates = add_output_schema(fields, output_model)
        needed = list_columns(templates)
        if table.rows or table.columns:
            check_columns(needed, table.columns)
        self.templates, self.fields = dict(templates), dict(fields)
        self.name, self.options, self.is_shown = name, options or {}, progress
        run_options = drop_none(**collect_options(options or {}, cache=True))
        if sealed:
            run_options["sealed"] = True
        self.http = http
        self._model = output_model
        self.rows = [{name: to_cell(row.get(name)) for name in needed} for row in table.rows]
        # Without the cache, each call is a map of its own.
        key = make_map_key(name + part, templates, run_options)
        self.key = key if run_options.get("cache") else None
        self._body = {
            "capability": name,
            "input": self.templates,
            "options": run_options,
            "on_error": on_error,
            "concurrency": concurrency,
            "key": self.key,
            **make_annotation(tags, note),
        }
        self.limit_usd = max_cost_usd
        self._index, self._library = table.index, table.library
        self._row_count = len(table.rows)
        self._progress = RowProgress(len(table.rows), max_cost_usd, is_shown=progress)
        self._map: MapRecord | None = None
        # The positions of equal rows of this call, by their digest, or of a file by their number.
        self._positions: dict[str | int, list[int]] = {}
        for position, row in enumerate(self.rows):
            self._positions.setdefault(digest_row(row), []).append(position)
        self._last_end = 0  # number of the last end before this call
        self._results: dict[int, RowResult] = {}
        self._spent_usd = 0.0

    @property
    def map_id(self) -> str:
        """The id of the map; "" before it has begun."""
        return "" if self._map is None else self._map.id

    @property
    def paid_usd(self) -> float:
        """The total cost of the map in US dollars, with failed attempts and earlier calls."""
        return 0.0 if self._map is None else self._map.cost_incurred_usd

    @abstractmethod
    def run_all(self) -> D:
        """Run every row, and return the results in order.

        Raises:
            RequestError: the refusal of the call as such, or of every row.
            KeyboardInterrupt: the caller interrupted it; the map goes on.
        """

    def _explain_interrupt(self, error: BaseException) -> None:
        """Make an interrupt say how many rows are done, and how to go on."""
        reached = self._progress.describe(self._spent_usd)
        explain_interrupt(
            error,
            f"Interrupted: {reached}. The map goes on, within its budget: call again with the"
            f' same arguments to wait for it; client.maps.get("{self.map_id}").cancel() stops it.',
        )

    def _note_numbers(self, answer: MapRowNumbers) -> None:
        """Note the numbers that the rows of a file have in the map."""
        if not self._positions:
            self._last_end = answer.last_end
        self._positions.clear()
        for position, number in enumerate(answer.numbers):
            self._positions.setdefault(number, []).append(position)
        self._row_count = self._progress.total = len(answer.numbers)

    def _split_rest(self) -> list[list[Mapping[str, object]]]:
        """Split the rows without a result into pages; of equal rows, the first."""
        if self.source is not None:
            return []
        firsts = sorted(positions[0] for positions in self._positions.values())
        return list(split_pages([self.rows[n] for n in firsts if n not in self._results]))

    @property
    def _is_complete(self) -> bool:
        return len(self._results) == self._row_count

    def _keep_page(self, page: MapRowPage, *, are_known: bool = False) -> int:
        """Keep the results of rows of the map; return the number of the last end, or 0.

        Args:
            are_known: whether the rows ended before this call, which runs those that failed again.
        """
        if are_known and page.rows:
            self._last_end = page.rows[-1].n
        with pause_collector():
            for row in page.rows:
                is_retried = row.status in ("failed", "cancelled") and row.digest in self._positions
                if not (are_known and is_retried):
                    self._keep(row)
        return page.rows[-1].n if page.rows else 0

    def _keep(self, row: MapRow) -> None:
        """Keep the result of a row of the map for the rows of this call that are equal to it."""
        self._spent_usd += row.cost_incurred_usd
        positions = self._positions.get(row.digest if self.source is None else row.row, [])
        for position in positions:
            is_first = position == positions[0]
            result = read_result(row, self._model)
            if row.status == "skipped":
                result.status = NOT_BEGUN
            result.cost_usd = row.cost_usd if is_first else 0.0
            result.cached = row.cached or row.n <= self._last_end or not is_first
            self._end(position, result)

    def _leave_rest(self, record: MapRecord) -> None:
        """Record why the map ended before the remaining rows began."""
        self._map = record
        reason, error = STOPPED, f"Not begun: the map is {record.status}."
        if record.error is not None and record.error.code == ErrorCode.BUDGET_EXCEEDED.name:
            reason, error = record.error.code, f"{record.error.code}: {record.error.message}"
        elif record.error is not None and record.status == "failed":
            error = f"Not begun: {record.error.message}"
        for position in range(self._row_count):
            if position not in self._results:
                self._end(position, RowResult(NOT_BEGUN, error=error, reason=reason))

    def _end(self, position: int, result: RowResult) -> None:
        self._results[position] = result
        show_result(self._progress, result, self._spent_usd)

    def _list_results(self) -> list[RowResult]:
        return [self._results[position] for position in range(self._row_count)]

    def build_frame(
        self, results: Sequence[RowResult], library: Library | None = None
    ) -> "pd.DataFrame":
        """Build the table of the results, which may be of another library than pandas."""
        library = library or self._library
        frame: pd.DataFrame = build_frame(results, self._index, self._model, library)
        if library == "pandas":
            frame.attrs["map"] = self.map_id
        return frame


def _find_source(rows: object) -> Path | str | None:
    """Return the path of a file or the id of an artifact that has the rows; None for rows."""
    if isinstance(rows, ArtifactView):
        return str(rows.id)
    is_source = isinstance(rows, Path) or (isinstance(rows, str) and is_id(rows, Prefix.ARTIFACT))
    return rows if is_source else None  # type: ignore[return-value]
