"""Maps as views of both clients."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from toolkit.client._output_model import parse_output
from toolkit.client._record_view import Member
from toolkit.client._row_results import EMPTY_CELL, NOT_BEGUN, RowResult
from toolkit.client._row_tables import Library, build_frame
from toolkit.client._work_views import AnnotatedView
from toolkit.contract.errors import WorkError
from toolkit.contract.jobs import Options
from toolkit.contract.maps import MapRecord, MapRow, OnError, RowCounts
from toolkit.display.progress.row_progress import RowProgress

if TYPE_CHECKING:
    from pydantic import BaseModel


class MapView(AnnotatedView[MapRecord]):
    """A map: its template, the state of its rows, and its cost."""

    facts: tuple[str, ...] = (
        "capability", "status", "status_detail", "input", "row_counts", "reasons", "max_cost_usd",
        "cost_incurred_usd", "estimated_cost_usd", "error",
    )  # fmt: skip

    capability = Member[str]("The capability, as `name@version`.")
    input = Member[dict[str, object]]("The input of each row, with its templates.")
    options = Member[Options]("The options of each row.")
    row_counts = Member[RowCounts]("The number of rows, in total and by status.")
    reasons = Member[dict[str, int]]("The number of rows without a result, by their error's code.")
    max_cost_usd = Member[float | None]("The budget of all rows, in US dollars.")
    on_error = Member[OnError]("`stop`, `continue`, or the number of failures that ends it.")
    concurrency = Member[int]("The maximum number of rows in progress.")
    key = Member[str | None]("The name by which an equal call finds it, if any.")
    started_at = Member[datetime | None]("The time at which it started, or None before.")

    def _build_table(
        self,
        rows: Sequence[MapRow],
        output_model: "type[BaseModel] | None",
        library: Library,
    ) -> Any:
        import pandas as pd

        rows = sorted(rows, key=lambda row: row.row)
        results = [read_result(row, output_model) for row in rows]
        index = pd.Index([row.row for row in rows], name="row")
        frame = build_frame(results, index, output_model, library)
        if library == "pandas":
            frame.attrs["map"] = self.id
        return frame


def read_result(row: MapRow, output_model: "type[BaseModel] | None") -> RowResult:
    """Read the result of a row, as an instance of the model if there is one."""
    result = RowResult(
        row.status, row.output, row.cost_usd, row.latency_ms, row.job_id, cached=row.cached
    )
    if row.output is not None and isinstance(confidence := row.output.get("confidence"), float):
        result.confidence = confidence
    if row.error is not None:
        result.error = f"{row.error.code}: {row.error.message}"
        result.reason = EMPTY_CELL if row.status == "skipped" else row.error.code
    elif output_model is not None:
        try:
            result.value = parse_output(output_model, row.output, row.job_id or "")
        except WorkError as error:
            result.error, result.reason, result.value = str(error), error.code.name, None
    return result


def show_result(display: RowProgress, result: RowResult, spent_usd: float) -> None:
    """Add the result of a row to a display of progress."""
    display.add(
        spent_usd,
        is_started=result.status not in (NOT_BEGUN, "skipped"),
        is_timed=result.job_id is not None and not result.cached,
        reason=result.reason,
        error=result.error,
    )
