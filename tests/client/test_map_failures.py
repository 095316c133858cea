"""Rows of a map that fail: the number of calls for one mistake, and its report."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pydantic import BaseModel

from toolkit import Client
from toolkit.contract.errors import RequestError
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings


@pytest.fixture
def client(tmp_path: Path, faults: Faults) -> Iterator[Client]:
    """A client of its own engine, with simulated vendors that can fail."""
    settings = Settings(data_dir=tmp_path, retry_base_s=0.01, breaker_cooldown_s=0.1)
    with Client.local(settings=settings, faults=faults) as client:
        yield client


def _ask(client: Client, count: int, **options: Any) -> pd.DataFrame:
    rows = [{"n": n} for n in range(count)]
    arguments = {
        "objective": "On {n}",
        "options": {"provider": "openai"},
        "progress": False,
        **options,
    }
    return client.map("llm.generate", rows, **arguments)


def _count_calls(faults: Faults) -> int:
    return sum(call.vendor == "openai" for call in faults.calls)


class Verdict(BaseModel):
    """An answer that no text of this file fits."""

    certain: bool


@pytest.mark.parametrize(
    ("on_error", "paid", "rows"), [("stop", 10, 60), (2, 2, 60), (1, 1, 60), ("continue", 25, 25)]
)
def test_map_stops_at_the_limit_of_failures(
    client: Client, faults: Faults, on_error: Any, paid: int, rows: int
) -> None:
    """Given a call that fails for each row, then the map stops exactly at the limit, if any."""
    faults.fail("openai", status=400)

    table = _ask(client, rows, on_error=on_error)

    assert list(table["status"]) == ["failed"] * paid + ["not begun"] * (rows - paid)
    assert _count_calls(faults) == paid
    assert table["error"][paid:].str.contains("failed with PROVIDER_REJECTED").all()


def test_invalid_answers_stop_a_map(client: Client, faults: Faults) -> None:
    """Given answers that never fit the output model, then the map stops after ten."""
    faults.say("openai", *["no JSON"] * 200)

    table = _ask(client, 40, output_model=Verdict)

    assert (table["status"] != "not begun").sum() == 10
    assert table["error"][:10].str.startswith("INVALID_OUTPUT").all()


@pytest.mark.parametrize(("status", "on_error"), [(500, 1), (400, "stop")])
def test_map_continues_after_few_or_transient_failures(
    client: Client, faults: Faults, status: int, on_error: Any
) -> None:
    """Given an outage, or fewer failures than the limit, then no row is left out."""
    faults.fail("openai", status=status, times=9)
    table = _ask(client, 30, on_error=on_error)
    assert set(table["status"]) == {"failed", "completed"}


def test_runs_three_rows_before_the_others(client: Client, faults: Faults) -> None:
    """Given slow rows, then only three are under way until the first succeeds."""
    faults.add(Fault("openai", delay_ms=150))
    table = _ask(client, 9)
    runs = sorted((client.jobs.get(id) for id in table["job_id"]), key=lambda run: run.created_at)
    first_end = min(run.completed_at for run in runs if run.completed_at is not None)
    assert sum(run.created_at < first_end for run in runs) == 3


@pytest.mark.parametrize("limit", [0, True, "never", None])
def test_rejects_unknown_limits_of_failures(client: Client, faults: Faults, limit: Any) -> None:
    """Given a value that is no limit, then no row begins."""
    with pytest.raises(RequestError, match="on_error is"):
        _ask(client, 3, on_error=limit)
    assert not _count_calls(faults)


def test_reports_reasons_of_failed_rows(
    client: Client, faults: Faults, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given failed rows, then the last lines count the reasons and have an error of each."""
    faults.fail("openai", status=400)
    _ask(client, 30, progress=True)
    line, rejected, stopped = capsys.readouterr().err.strip().splitlines()
    assert line.startswith(
        "30 of 30 rows, 10 failed (PROVIDER_REJECTED), 20 not begun (stopped), $0"
    )
    assert rejected.startswith("PROVIDER_REJECTED: ")
    assert stopped.startswith("stopped: ")
    assert "set on_error" in stopped
