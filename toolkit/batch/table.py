"""The outcome of a batch: a row for each notebook, as a DataFrame, a CSV file and a report."""

import csv
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

from toolkit.batch.records import RESERVED_NAMES

RowStatus = Literal["completed", "failed", "not run"]


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """The outcome of one row of a batch: one notebook with one set of parameters.

    Attributes:
        path: path of the executed notebook, in the folder of the batch.
        status: completed, failed (kept with its error), or not run because the batch was stopped.
        seconds: duration, the start of its kernel included.
        recorded: values that the notebook recorded.
        reused: whether the outcome is from an earlier batch.
    """

    parameters: Mapping[str, Any]
    path: str
    status: RowStatus
    error: str | None = None
    seconds: float | None = None
    recorded: Mapping[str, Any] = field(default_factory=dict)
    reused: bool = False


def build_columns(outcomes: Sequence[RowOutcome]) -> dict[str, list[Any]]:
    """Build the columns: parameters, recorded values, then status, error, seconds and path.

    A parameter named like one of the last four becomes `parameter.name`. A recorded value named
    like a parameter becomes `recorded.name`.
    """
    parameters = dict.fromkeys(name for outcome in outcomes for name in outcome.parameters)
    recorded = dict.fromkeys(name for outcome in outcomes for name in outcome.recorded)
    columns: dict[str, list[Any]] = {}
    for name in parameters:
        columns[_disambiguate(name, "parameter", RESERVED_NAMES)] = [
            outcome.parameters.get(name) for outcome in outcomes
        ]
    for name in recorded:
        columns[_disambiguate(name, "recorded", parameters)] = [
            outcome.recorded.get(name) for outcome in outcomes
        ]
    return columns | {
        name: [getattr(outcome, name) for outcome in outcomes] for name in RESERVED_NAMES
    }


def to_frame(outcomes: Sequence[RowOutcome]) -> "pd.DataFrame":
    """Build a table with a row each; columns with gaps keep their values (pandas makes 1 a 1.0)."""
    import pandas as pd

    return pd.DataFrame(
        {
            name: pd.Series(
                values, dtype=object if any(value is None for value in values) else None
            )
            for name, values in build_columns(outcomes).items()
        }
    )


def _disambiguate(name: str, kind: str, names: Iterable[str]) -> str:
    return f"{kind}.{name}" if name in names else name


def write_results(out: Path, outcomes: Sequence[RowOutcome], report: Mapping[str, Any]) -> None:
    """Write `results.csv` and `report.json`, each completely or not at all."""
    columns = build_columns(outcomes)
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(columns)
    rows.writerows(
        [json.dumps(value) if isinstance(value, dict | list) else value for value in row]
        for row in zip(*columns.values(), strict=True)
    )
    replace_file(out / "results.csv", text.getvalue())
    replace_file(out / "report.json", json.dumps(report, indent=2, ensure_ascii=False) + "\n")


def replace_file(path: Path, text: str) -> None:
    """Write a text to a file in place of its content, completely or not at all."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text, encoding="utf-8")
    os.replace(fresh, path)
