# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.map` with a cascade: the parts of the work, each of which is a map."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from toolkit.client._cascade import (
    FURTHER_ANSWERS,
    CascadeRows,
    check_cascade,
    choose_model,
    describe_summary,
    list_further_fields,
    pin_model,
)
from toolkit.client._options import collect_options
from toolkit.client._row_results import EMPTY_CELL, NOT_BEGUN, RowResult
from toolkit.client._sync.mapping import RowMapper
from toolkit.client._wire.messages import make_run_body
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.row_templates import fill_templates, find_empty
from toolkit.contract.runs import Route
from toolkit.display.progress.row_progress import show_line

if TYPE_CHECKING:
    import pandas as pd


class Cascade:
    """A cheap model that answers all rows, and a dear model for a sample and for unsure rows.

    Args:
        whole: the call without a cascade, which is not run.
        make_part: function that makes a map of rows, fields, options and the name of the part.
        cascade: the cheap and the dear model.
        agreement: least share of rows with the label of the dear model.

    Raises:
        TypeError: for a wrong argument.
    """

    def __init__(
        self,
        whole: RowMapper,
        make_part: Callable[..., RowMapper],
        cascade: Sequence[str],
        agreement: float,
    ) -> None:
        check_cascade(cascade, agreement, whole.options, is_table=whole.source is None)
        self._whole, self._make_part = whole, make_part
        self._cheap, self._dear = cascade
        self._target = agreement
        self._parts: list[RowMapper] = []

    def run_all(self) -> "pd.DataFrame":
        """Run the parts one after the other, and return the table.

        Raises:
            RequestError: `PROVIDER_NOT_ALLOWED` if no connected model can be a member; others as
                for `client.map`.
            KeyboardInterrupt: the caller interrupted it; an equal call goes on.
        """
        whole = self._whole
        example = next((row for row in whole.rows if not find_empty(row)), None)
        if example is None:
            return whole.run_all()
        cheap, inputs = self._choose_cheap(example)
        _, dear = self._require_model(self._dear, example)
        options = pin_model(cheap, whole.options)
        self._parts = [self._make_part(whole.rows, i, options, part="/cheap") for i in inputs]
        cheap_parts = tuple(self._parts)
        self._add_dear_part([], dear)
        if whole.limit_usd is not None:
            for part in self._parts:
                part.pause()
        answers = [self._run_part(part) for part in cheap_parts]
        rows, stop = self._check_rows(answers, dear)
        frame = whole.build_frame(rows.list_results(stop), "pandas")
        rows.add_columns(frame)
        maps = [id for id in dict.fromkeys(part.map_id for part in self._parts) if id]
        summary = {**rows.summarize(), "models": [cheap, dear], "maps": maps}
        frame.attrs |= {"map": maps[0], "cascade": summary}
        if whole.is_shown:
            show_line(describe_summary(summary))
        return frame

    def _choose_cheap(self, example: Mapping[str, object]) -> tuple[str, list[dict[str, object]]]:
        """Choose the cheap model, and the inputs whose answers give labels and confidences."""
        fields, asked = self._whole.fields, {"confidence": True}
        try:
            sure = self._find_model(self._cheap, example, asked)
        except RequestError:  # also of a capability without confidences
            sure = None
        cost_usd, model = self._require_model(self._cheap, example)
        if sure is not None and sure[0] <= cost_usd * (1 + FURTHER_ANSWERS):
            return sure[1], [{**fields, **asked}]
        return model, [fields, *list_further_fields(fields)]

    def _check_rows(
        self, answers: Sequence[Sequence[RowResult]], dear: str
    ) -> tuple[CascadeRows, RowResult | None]:
        """Have the dear model answer; return the rows, and the first that was not begun, if any.

        Args:
            answers: answers of the cheap model.
            dear: the dear model.
        """
        cells = self._whole.rows
        rows = CascadeRows(cells, answers, self._target)
        stop = _find_stop(*answers)
        positions = rows.sample
        while positions and stop is None:
            part = self._add_dear_part([cells[n] for n in positions], dear)
            results = self._run_part(part)
            rows.add(positions, results)
            stop = _find_stop(results)
            is_decided = stop is not None or rows.decision is not None
            positions = [] if is_decided else rows.decide()
        return rows, stop

    def _add_dear_part(self, rows: Sequence[object], dear: str) -> RowMapper:
        options = pin_model(dear, self._whole.options)
        part = self._make_part(rows, self._whole.fields, options, part="/dear")
        self._parts.append(part)
        return part

    def _run_part(self, part: RowMapper) -> list[RowResult]:
        """Run a part within the budget that the others leave."""
        if self._whole.limit_usd is not None:
            # Parts with the same key are the same map, whose last state counts.
            paid = {other.key or other.map_id: other.paid_usd for other in self._parts}
            paid.pop(part.key or part.map_id, None)
            part.limit_usd = max(0.0, self._whole.limit_usd - sum(paid.values()))
        return part.run_rows()

    def _require_model(self, member: str, example: Mapping[str, object]) -> tuple[float, str]:
        model = self._find_model(member, example, {})
        if model is None:
            raise RequestError(
                ErrorCode.PROVIDER_NOT_ALLOWED,
                f"No connected model can be `{member}` for {self._whole.name}: name a provider or"
                " model, or connect a provider.",
            )
        return model

    def _find_model(
        self, member: str, example: Mapping[str, object], more: Mapping[str, object]
    ) -> tuple[float, str] | None:
        """Find the model of a member that can answer a row, with its cost; None without any."""
        fields = {**fill_templates(self._whole.templates, example), **more}
        options = collect_options(pin_model(member, self._whole.options))
        body = make_run_body(self._whole.name, fields, None, options)
        route = self._whole.http.request_record(Route, "POST", "/route", json=body)
        return choose_model(member, route.candidates)


def _find_stop(*answers: Sequence[RowResult]) -> RowResult | None:
    """Find the first row that was not begun although its cells have values."""
    rows = (row for part in answers for row in part)
    return next((r for r in rows if r.status == NOT_BEGUN and r.reason != EMPTY_CELL), None)
