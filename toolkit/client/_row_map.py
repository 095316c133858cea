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
from toolkit.client._row_tables import RowTable, build_frame, read_rows
from toolkit.client._wait_interruption import explain_interrupt
from toolkit.client._wire.messages import drop_none, make_annotation
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.ids import Prefix, is_id
from toolkit.contract.maps import MapRecord, MapRow, MapRowNumbers
from toolkit.contract.row_templates import check_columns, list_columns, to_cell
from toolkit.contract.run_options import RunOptions
from toolkit.display.progress.row_progress import RowProgress

if TYPE_CHECKING:
    import pandas as pd

D = TypeVar("D")  # a DataFrame; in the async client, a coroutine that returns one


class RowMap(ABC, Generic[D]):
    """The rows of one call of `client.map`, and the state of each row.

    Args:
        name, rows, options, output_model: as for `client.map`, and so are the other arguments.
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
    ) -> None:
        is_number = isinstance(on_error, int) and not isinstance(on_error, bool) and on_error > 0
        if not is_number and on_error not in ("stop", "continue"):
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f'on_error is "stop", "continue" or a number of rows, not {on_error!r}.',
            )
        self._source = _find_source(rows)
        table = RowTable([], []) if self._source is not None else read_rows(rows)
        templates = add_output_schema(fields, output_model)
        needed = list_columns(templates)
        if table.rows or table.columns:
            check_columns(needed, table.columns)
        run_options = drop_none(**collect_options(options or {}, cache=True))
        if sealed:
            run_options["sealed"] = True
        self._http = http
        self._model = output_model
        self._pages = list(
            split_pages([{name: to_cell(row.get(name)) for name in needed} for row in table.rows])
        )
        self._body = {
            "capability": name,
            "input": dict(templates),
            "options": run_options,
            "max_cost_usd": max_cost_usd,
            "on_error": on_error,
            "concurrency": concurrency,
            # Without the cache, each call is a map of its own.
            "key": make_map_key(name, templates, run_options) if run_options.get("cache") else None,
            **make_annotation(tags, note),
        }
        self._index, self._library = table.index, table.library
        self._row_count = len(table.rows)
        self._progress = RowProgress(len(table.rows), max_cost_usd, is_shown=progress)
        self._map: MapRecord | None = None
        self._numbers: list[int] = []  # the number of each row in the map; equal rows share one
        self._positions: dict[int, list[int]] = {}
        self._last_end: int | None = None  # number of the last end before this call
        self._results: dict[int, RowResult] = {}
        self._spent_usd = 0.0

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
        map_id = "" if self._map is None else self._map.id
        explain_interrupt(
            error,
            f"Interrupted: {reached}. The map goes on, within its budget: call again with the"
            f' same arguments to wait for it; client.maps.get("{map_id}").cancel() stops it.',
        )

    def _clear_numbers(self) -> None:
        """Forget the numbers of rows, before all rows are added, also a second time."""
        self._numbers.clear()
        self._positions.clear()

    def _note_numbers(self, answer: MapRowNumbers) -> None:
        """Note the numbers that a page of rows has in the map."""
        if self._last_end is None:
            self._last_end = answer.last_end
        for number in answer.numbers:
            self._positions.setdefault(number, []).append(len(self._numbers))
            self._numbers.append(number)

    @property
    def _is_complete(self) -> bool:
        return len(self._results) == self._row_count

    def _keep(self, row: MapRow) -> None:
        """Keep the result of a row of the map for the rows of this call that are equal to it."""
        self._spent_usd += row.cost_incurred_usd
        for position in self._positions.get(row.row, ()):
            is_first = position == self._positions[row.row][0]
            result = read_result(row, self._model)
            if row.status == "skipped":
                result.status = NOT_BEGUN
            result.cost_usd = row.cost_usd if is_first else 0.0
            result.cached = row.cached or row.n <= (self._last_end or 0) or not is_first
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

    def _build_frame(self) -> "pd.DataFrame":
        """Build the table of the results, which may be of another library than pandas."""
        results = [self._results[position] for position in range(self._row_count)]
        frame: pd.DataFrame = build_frame(results, self._index, self._model, self._library)
        if self._library == "pandas":
            frame.attrs["map"] = "" if self._map is None else self._map.id
        return frame


def _find_source(rows: object) -> Path | str | None:
    """Return the path of a file or the id of an artifact that has the rows; None for rows."""
    if isinstance(rows, ArtifactView):
        return str(rows.id)
    is_source = isinstance(rows, Path) or (isinstance(rows, str) and is_id(rows, Prefix.ARTIFACT))
    return rows if is_source else None  # type: ignore[return-value]
