"""What came of a batch: one row a notebook, as a DataFrame, a CSV file and a report."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

from toolkit.batch.records import RESERVED

Status = Literal["completed", "failed", "not run"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one row.

    Attributes:
        parameters: of the grid.
        path: of the executed notebook, in the folder of the batch.
        status: completed, failed (kept with its error), or not run as the batch was stopped.
        error: what went wrong, in one line.
        seconds: what it took, its kernel included.
        recorded: what it recorded.
        kept: whether it is from an earlier batch.
    """

    parameters: Mapping[str, Any]
    path: str
    status: Status
    error: str | None = None
    seconds: float | None = None
    recorded: Mapping[str, Any] = field(default_factory=dict)
    kept: bool = False


def to_frame(outcomes: Sequence[Outcome]) -> "pd.DataFrame":
    """A row each: parameters, what was recorded, then status, error, seconds and path.

    Where two of a name would meet, the parameter is `parameter.name`, the other `recorded.name`.
    """
    import pandas as pd

    parameters = dict.fromkeys(name for one in outcomes for name in one.parameters)
    recorded = dict.fromkeys(name for one in outcomes for name in one.recorded)
    given = {name: _apart(name, "parameter", RESERVED) for name in parameters}
    told = {name: _apart(name, "recorded", parameters) for name in recorded}
    columns = {given[name]: [one.parameters.get(name) for one in outcomes] for name in given}
    columns |= {told[name]: [one.recorded.get(name) for one in outcomes] for name in told}
    columns |= {name: [getattr(one, name) for one in outcomes] for name in RESERVED}
    return pd.DataFrame(
        # A column that has gaps keeps its values as they are: 1 would become 1.0, None NaN.
        {
            name: pd.Series(
                values, dtype=object if any(value is None for value in values) else None
            )
            for name, values in columns.items()
        }
    )


def _apart(name: str, kind: str, taken: Iterable[str]) -> str:
    return f"{kind}.{name}" if name in taken else name


def write(out: Path, frame: "pd.DataFrame", report: Mapping[str, Any]) -> None:
    """Write `results.csv` and `report.json`, each whole or not at all."""
    replace(out / "results.csv", frame.to_csv(index=False))
    replace(out / "report.json", json.dumps(report, indent=2, ensure_ascii=False) + "\n")


def replace(path: Path, text: str) -> None:
    """Put a file in the place of another, whole or not at all."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text, encoding="utf-8")
    os.replace(fresh, path)
