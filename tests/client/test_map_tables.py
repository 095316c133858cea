"""`client.map` on artifacts, files and tables of other libraries, and rows as they arrive."""

import importlib.util
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pydantic import BaseModel

from tests.support.timing import wait_until
from toolkit import Client
from toolkit.contract.errors import RequestError
from toolkit.sandbox import Fault, Faults

CSV = "text,n\ntea,1\nsalt,2\ntea,1\n,3\n"


class Label(BaseModel):
    """A label, with a field of each kind of column."""

    label: str
    count: int
    certain: bool
    share: float
    day: date
    parts: list[int]


def label_rows(client: Client, rows: Any, **options: Any) -> Any:
    """Map rows to labels."""
    return client.map("llm.generate", rows, objective="Classify: {text}", progress=False, **options)


def find_source(client: Client, kind: str, folder: Path) -> Any:
    """Return the same table as a file, as the id of an artifact, or as an artifact."""
    path = folder / "messages.csv"
    path.write_text(CSV)
    if kind == "file":
        return path
    artifact = client.artifacts.upload(path)
    return artifact if kind == "artifact" else artifact.id


@pytest.mark.parametrize("kind", ["file", "artifact", "id"])
def test_maps_the_rows_of_a_file(client: Client, tmp_path: Path, kind: str) -> None:
    """Given a table as a file or artifact, then the results are in its order, each paid once."""
    source = find_source(client, kind, tmp_path)
    table = label_rows(client, source)
    again = label_rows(client, source)

    assert list(table["status"]) == ["completed"] * 3 + ["not begun"]
    assert list(table.index) == [0, 1, 2, 3]
    objectives = [client.jobs.get(id).input["objective"] for id in table["job_id"][:3]]
    assert objectives == ["Classify: tea", "Classify: salt", "Classify: tea"]
    assert list(table["cached"][:3]) == [False, False, True]
    assert table["cost_usd"].sum() == pytest.approx(sum(job.cost_usd for job in client.jobs))
    assert list(again["job_id"][:3]) == list(table["job_id"][:3])
    assert again["cached"][:3].all()
    assert len(client.jobs.list()) == 2


def test_file_without_a_column_is_refused(client: Client, tmp_path: Path) -> None:
    """Given a template that names no column of the file, then the error names the column."""
    path = tmp_path / "messages.csv"
    path.write_text("txt\ntea\n")
    with pytest.raises(RequestError, match="column `text`"):
        label_rows(client, path)
    assert not len(client.jobs.list())


def _make_polars(rows: list[dict[str, object]]) -> Any:
    return importlib.import_module("polars").DataFrame(rows)


def _make_arrow(rows: list[dict[str, object]]) -> Any:
    return importlib.import_module("pyarrow").Table.from_pylist(rows)


@pytest.mark.parametrize(("library", "make"), [("polars", _make_polars), ("pyarrow", _make_arrow)])
def test_results_are_of_the_library_of_the_rows(
    client: Client, library: str, make: Callable[[list[dict[str, object]]], Any]
) -> None:
    """Given a table of polars or pyarrow, then the results are such a table, with typed columns."""
    for name in ("narwhals", library):
        pytest.importorskip(name, reason="needs the extra `tables`, or polars")
    rows: list[dict[str, object]] = [{"text": "tea"}, {"text": None}, {"text": "salt"}]
    table = label_rows(client, make(rows), output_model=Label)
    later = client.maps.list()[0].results(Label, library=library)  # type: ignore[arg-type]
    plain = client.maps.list()[0].results(library=library)  # type: ignore[arg-type]

    assert type(table).__module__.partition(".")[0] == library
    columns = table.to_dict(as_series=False) if library == "polars" else table.to_pydict()
    kinds = {name: str(kind).lower() for name, kind in zip(*_list_types(table), strict=True)}
    assert columns["status"] == ["completed", "not begun", "completed"]
    assert columns["label"][1] is None
    outputs = [client.jobs.get(id).parse(Label) for id in columns["job_id"] if id]
    assert [columns["count"][n] for n in (0, 2)] == [output.count for output in outputs]
    assert [columns["day"][n] for n in (0, 2)] == [output.day for output in outputs]
    assert [columns["parts"][n] for n in (0, 2)] == [output.parts for output in outputs]
    assert kinds["count"] == "int64"
    assert kinds["day"].startswith("date")
    assert kinds["share"] in ("float64", "double")
    assert kinds["certain"] in ("boolean", "bool")
    assert kinds["error"] == "string"
    assert later["row"].to_pylist() if library == "pyarrow" else later["row"].to_list()
    assert later.shape[0] == plain.shape[0] == 3


def _list_types(table: Any) -> tuple[list[str], list[Any]]:
    if hasattr(table, "column_names"):
        return table.column_names, table.schema.types
    return table.columns, table.dtypes


def test_other_libraries_are_named_if_missing(client: Client) -> None:
    """Given a library that is not installed or unknown, then the error names it."""
    label_rows(client, pd.Series(["tea"]))
    found = client.maps.list()[0]
    with pytest.raises(TypeError, match="library is pandas, polars, pyarrow"):
        found.results(library="duckdb")  # type: ignore[arg-type]
    missing = [n for n in ("narwhals", "polars") if importlib.util.find_spec(n) is None]
    if not missing:
        return
    with pytest.raises(ImportError, match=f"pip install {missing[0]}"):
        found.results(library="polars")


def test_rows_arrive_as_they_end(tmp_path: Path) -> None:
    """Given a row that never ends, then the rows before it are there, and the others follow."""
    faults = Faults()
    with Client.local(tmp_path, faults=faults) as client:
        found = client.maps.create(
            {
                "capability": "llm.generate",
                "input": {"objective": "On {topic}"},
                "rows": [{"topic": "tea"}],
            }
        ).wait(progress=False)
        faults.add(Fault("minimax", "chat/completions", mangle="hang"))
        found.add_rows([{"topic": "salt"}])
        rows = found.iter_rows()
        first = next(rows)
        wait_until(lambda: found.refresh().row_counts.running == 1)
        kept = list(found.iter_rows(wait=False))
        found.cancel()
        others = list(rows)

    assert (first.row, first.status) == (0, "completed")
    assert first.output is not None
    assert kept == [first]
    assert [(row.row, row.status) for row in others] == [(1, "cancelled")]
