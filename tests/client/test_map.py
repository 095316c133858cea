"""`client.map`: a job for each row of a table."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
import pytest
from pydantic import BaseModel, Field

from tests.support.timing import wait_until
from toolkit import AsyncClient, Client
from toolkit.contract.errors import RequestError
from toolkit.sandbox import Fault, Faults

TEXTS = pd.DataFrame(
    {"text": ["tea", "salt", "tide", "rope"], "n": [1, 2, 3, 4]}, index=["a", "b", "c", "d"]
)


class Label(BaseModel):
    """A label."""

    label: Literal["dry", "wet"]
    count: int
    certain: bool
    share: float


def _classify(client: Client, rows: Any = TEXTS, **options: Any) -> pd.DataFrame:
    arguments = {
        "objective": "Classify: {text}",
        "output_model": Label,
        "progress": False,
        **options,
    }
    return client.map("llm.generate", rows, **arguments)


def _sum_usage(client: Client) -> float:
    return sum(run.cost_incurred_usd for run in client.jobs)


def test_keeps_the_index_and_types_the_columns(client: Client) -> None:
    """Given a frame and a model, then its fields are columns of their types, by the same index."""
    table = _classify(client)

    assert list(table.index) == ["a", "b", "c", "d"]
    assert dict(table.dtypes.astype(str)) == {
        "label": "string", "count": "Int64", "certain": "boolean", "share": "Float64",
        "status": "string", "cost_usd": "Float64", "latency_ms": "Int64", "job_id": "string",
        "cached": "boolean", "error": "string",
    }  # fmt: skip
    assert set(table["status"]) == {"completed"}
    assert table["error"].isna().all()
    inputs = [client.jobs.get(id).input["objective"] for id in table["job_id"]]
    assert inputs == [f"Classify: {text}" for text in TEXTS["text"]]


def test_new_client_pays_only_new_rows(tmp_path: Path) -> None:
    """Given a map of some rows, when a new client maps all, then only the new rows are paid."""
    with Client.local(tmp_path, sandbox=True) as client:
        first = _classify(client, TEXTS[:2])
        paid = _sum_usage(client)
    with Client.local(tmp_path, sandbox=True) as client:
        both = _classify(client)
        again = _classify(client)
        assert _sum_usage(client) == pytest.approx(float(both["cost_usd"].sum()))

    assert paid == pytest.approx(float(first["cost_usd"].sum()))
    assert list(both["cached"]) == [True, True, False, False]
    assert again["cached"].all()
    assert list(again["cost_usd"]) == list(both["cost_usd"])
    assert list(again["label"]) == list(both["label"])


_KILLED = """
import os, signal, sys
from toolkit import Client
from toolkit.display.progress.row_progress import RowProgress

def add(self, *_: object, **__: object) -> None:
    self.done += 1
    if self.done == 5:
        os.kill(os.getpid(), signal.SIGKILL)

RowProgress.add = add
rows = [{"n": n} for n in range(20)]
client = Client.local(sys.argv[1], sandbox=True, database=sys.argv[2] or None)
client.map("llm.generate", rows, objective="On {n}")
"""


def test_same_call_resumes_a_killed_kernel(
    tmp_path: Path, find_url: Callable[[Path], str | None]
) -> None:
    """Given a process killed amid its rows, then the same call has all rows, each paid once."""
    words = [sys.executable, "-c", _KILLED, str(tmp_path), find_url(tmp_path) or ""]
    killed = subprocess.run(words, check=False)
    with Client.local(tmp_path, sandbox=True) as client:
        rows = [{"n": n} for n in range(20)]
        table = client.map("llm.generate", rows, objective="On {n}", progress=False)
        paid = [job.input["objective"] for job in client.jobs if not job.cached]

    assert killed.returncode == -signal.SIGKILL
    assert set(table["status"]) == {"completed"}
    assert table["cached"].sum() >= 5
    assert sorted(paid) == sorted(f"On {n}" for n in range(20))


def test_reuses_rows_of_a_removed_provider(client: Client) -> None:
    """Given rows of a provider that is no longer connected, then the same call reuses them."""
    first = _classify(client, TEXTS[:3], tags=["wet"])
    providers = {client.jobs.get(id).provider for id in first["job_id"]}
    for connection in client.connections.list():
        if connection.record.provider in providers:
            client.connections.delete(connection.id)
    again = _classify(client)

    assert list(again["cached"]) == [True, True, True, False]
    assert list(again["job_id"][:3]) == list(first["job_id"])
    assert list(again["cost_usd"][:3]) == list(first["cost_usd"])
    assert client.jobs.get(again["job_id"]["d"]).provider not in providers
    assert again.attrs["map"] == first.attrs["map"]
    assert client.maps.get(first.attrs["map"]).tags == ["wet"]


def test_another_template_or_provider_is_another_call(client: Client) -> None:
    """Given another template or option, then no row of the first call is reused."""
    first = _classify(client)
    for options in ({"objective": "Sort: {text}"}, {"options": {"provider": "openai"}}):
        second = _classify(client, **options)
        assert second.attrs["map"] != first.attrs["map"]
        assert not second["cached"].any()
    assert not _classify(client, options={"cache": False})["cached"].any()


def test_slow_row_does_not_delay_other_rows(tmp_path: Path) -> None:
    """Given a slow first row, then all other rows begin before it ends."""
    faults = Faults()
    with Client.local(tmp_path, faults=faults) as client:
        faults.latency("openai", mean_ms=700, times=1)
        rows = [{"text": f"text {n}"} for n in range(6)]
        table = _classify(client, rows, concurrency=2, options={"provider": "openai"})
        runs = [client.jobs.get(id) for id in table["job_id"]]

    slow = max(runs, key=lambda run: run.latency_ms or 0)
    assert slow.completed_at is not None
    assert all(run.created_at < slow.completed_at for run in runs)
    assert [run.input["objective"] for run in runs] == [f"Classify: text {n}" for n in range(6)]


def test_budget_counts_earlier_costs(client: Client) -> None:
    """Given paid rows, then the budget of the next call includes their costs."""
    first = _classify(client, TEXTS[:2], max_tokens=50)
    paid = float(first["cost_usd"].sum())
    table = _classify(client, max_tokens=50, max_cost_usd=paid * 1.01)

    assert list(table["cached"][:2]) == [True, True]
    assert list(table["status"]) == ["completed", "completed", "not begun", "not begun"]
    assert table["error"][2:].str.contains("US dollars are left; raise max_cost_usd").all()


class Dated(BaseModel):
    """Fields of further types."""

    day: date | None
    count: Annotated[int, Field(ge=0)] | None


def test_columns_have_the_types_of_fields(client: Client) -> None:
    """Given fields that are dates or bounded numbers, then their columns are typed, also empty."""
    table = _classify(client, [{"text": None}], output_model=Dated)
    assert dict(table.dtypes.astype(str).head(2)) == {"day": "datetime64[us]", "count": "Int64"}
    plain = client.map("llm.generate", TEXTS, objective="On {text}", progress=False)
    assert plain["text"].dtype == "string"


def test_equal_rows_are_paid_once(client: Client) -> None:
    """Given two rows with one text, then the second has the answer of the first at no cost."""
    table = _classify(client, [{"text": "tea"}, {"text": "tea"}])

    assert table["label"][0] == table["label"][1]
    assert sorted(table["cost_usd"] > 0) == [False, True]


def test_same_call_retries_failed_rows(tmp_path: Path) -> None:
    """Given a vendor that fails once, then the row has the error, and the same call retries it."""
    faults = Faults()
    with Client.local(tmp_path, faults=faults) as client:
        faults.fail("openai", status=400, times=1)
        options = {"provider": "openai"}
        first = _classify(client, concurrency=1, options=options)
        second = _classify(client, concurrency=1, options=options)

    assert list(first["status"]) == ["failed", "completed", "completed", "completed"]
    assert first["error"]["a"].startswith("PROVIDER_")
    assert list(second["cached"]) == [False, True, True, True]
    assert set(second["status"]) == {"completed"}


def test_retried_row_is_not_cached(tmp_path: Path) -> None:
    """Given a row that failed last, when the same call retries it, then it counts as new."""
    faults = Faults()
    with Client.local(tmp_path, faults=faults) as client:
        options = {"provider": "openai"}
        _classify(client, TEXTS[:3], concurrency=1, options=options)
        faults.fail("openai", status=400, times=1)
        first = _classify(client, concurrency=1, options=options)
        second = _classify(client, concurrency=1, options=options)

    assert list(first["status"]) == ["completed"] * 3 + ["failed"]
    assert list(second["cached"]) == [True, True, True, False]


def test_skips_rows_with_empty_cells(client: Client) -> None:
    """Given a cell without a value, then its row has the reason, and the others run."""
    table = _classify(client, [{"text": "tea"}, {"text": None}, {"text": float("nan")}])

    assert list(table["status"]) == ["completed", "not begun", "not begun"]
    assert "`text` is empty" in table["error"][1]


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        ("Classify: {txt}", "did you mean `text`?"),
        ("Classify: {zzz}", "there are text, n"),
        ("Classify: {text", "cannot be read"),
        ("Classify: {n:03d}", "without a format"),
    ],
)
def test_rejects_wrong_templates(client: Client, objective: str, words: str) -> None:
    """Given a template with a mistake, then no row begins, and the error names the mistake."""
    with pytest.raises(RequestError) as refused:
        _classify(client, objective=objective)

    assert words in str(refused.value)
    assert not len(client.jobs.list())


def test_rejects_unknown_fields(client: Client) -> None:
    """Given a field that the capability does not have, then the call fails, not each row."""
    with pytest.raises(RequestError, match="objectiv"):
        client.map("llm.generate", TEXTS, objectiv="Classify: {text}", progress=False)


@pytest.mark.usefixtures("heed_interrupts")
def test_map_goes_on_after_an_interrupt(tmp_path: Path) -> None:
    """Given an interrupt while rows run, then the map goes on, and the same call waits for it."""
    faults = Faults()
    with Client.local(tmp_path, faults=faults) as client:
        faults.add(Fault("minimax", "chat/completions", delay_ms=400, times=3))

        def interrupt() -> None:
            wait_until(lambda: len(client.jobs.list()) == 3)
            signal.raise_signal(signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt, match="The map goes on") as interrupted:
            _classify(client)
        table = _classify(client)
        assert len(client.jobs.list()) == 4
        assert client.maps.list()[0].row_counts.completed == 4

    assert len(interrupted.value._render_traceback_()) == 1  # type: ignore[attr-defined]
    assert set(table["status"]) == {"completed"}


@pytest.mark.usefixtures("heed_interrupts")
def test_cancelled_map_begins_no_row(tmp_path: Path) -> None:
    """Given a map that is cancelled amid its rows, then no other row begins until it is resumed."""
    faults = Faults()
    with Client.local(tmp_path, faults=faults) as client:
        faults.add(Fault("minimax", "chat/completions", mangle="hang"))
        with ThreadPoolExecutor() as kernel:
            mapped = kernel.submit(_classify, client)
            wait_until(lambda: [found.row_counts.running for found in client.maps.list()] == [3])
            found = client.maps.list()[0].cancel()
            table = mapped.result()
        faults.clear()
        again = _classify(client)

    assert found.status == "cancelled"
    assert sorted(table["status"]) == ["cancelled"] * 3 + ["not begun"]
    assert set(again["status"]) == {"completed"}


async def test_async_client_maps(tmp_path: Path) -> None:
    """Given the async client and no model, then the fields of the output are columns."""
    async with AsyncClient.local(tmp_path, sandbox=True) as client:
        table = await client.map(
            "llm.generate", ({"n": n} for n in range(3)), objective="On {n}", progress=False
        )

    assert set(table["status"]) == {"completed"}
    assert table["text"].str.len().min() > 0
