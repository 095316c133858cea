"""Rows of a map that fail: how many are paid for the same mistake, and what is told of it."""

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
    with Client.local(settings=settings, faults=faults) as made:
        yield made


def _ask(client: Client, count: int, **more: Any) -> pd.DataFrame:
    rows = [{"n": n} for n in range(count)]
    given = {"objective": "On {n}", "options": {"provider": "openai"}, "progress": False, **more}
    return client.map("llm.generate", rows, **given)


def _count_calls(faults: Faults) -> int:
    return sum(call.vendor == "openai" for call in faults.calls)


class Verdict(BaseModel):
    """An answer that no text of this file fits."""

    sure: bool


@pytest.mark.parametrize(
    ("on_error", "paid", "rows"), [("stop", 10, 60), (2, 2, 60), (1, 1, 60), ("continue", 25, 25)]
)
def test_a_mistake_in_all_rows_is_paid_for_a_few(
    client: Client, faults: Faults, on_error: Any, paid: int, rows: int
) -> None:
    """Given a call that fails for each row, then it stops at the limit, if any, to the row."""
    faults.fail("openai", status=400)

    found = _ask(client, rows, on_error=on_error)

    assert list(found["status"]) == ["failed"] * paid + ["not begun"] * (rows - paid)
    assert _count_calls(faults) == paid
    assert found["error"][paid:].str.contains("failed with PROVIDER_REJECTED").all()


def test_answers_that_do_not_fit_the_model_stop_a_map_too(client: Client, faults: Faults) -> None:
    """Given answers that never fit the output model, then ten of them are enough."""
    faults.say("openai", *["no JSON"] * 200)

    found = _ask(client, 40, output_model=Verdict)

    assert (found["status"] != "not begun").sum() == 10
    assert found["error"][:10].str.startswith("INVALID_OUTPUT").all()


def test_a_vendor_that_is_away_for_a_moment_does_not_stop_a_map(
    client: Client, faults: Faults
) -> None:
    """Given a row that fails for a cause that passes, then a limit of one does not stop the map."""
    faults.fail("openai", status=500, times=9)

    found = _ask(client, 6, on_error=1)

    assert set(found["status"]) == {"failed", "completed"}


def test_some_failures_among_many_rows_do_not_stop_a_map(client: Client, faults: Faults) -> None:
    """Given fewer failures than the limit, then all other rows are completed."""
    faults.fail("openai", status=400, times=9)

    found = _ask(client, 30)

    assert (found["status"] == "completed").sum() == 21


def test_a_map_that_stopped_goes_on_by_the_same_call(client: Client, faults: Faults) -> None:
    """Given a map that stopped, when the cause is gone, then the same call runs all rows."""
    faults.fail("openai", status=400, times=10)
    first = _ask(client, 20)

    again = _ask(client, 20)

    assert (first["status"] == "completed").sum() == 0
    assert set(again["status"]) == {"completed"}


def test_three_rows_are_tried_before_the_others(client: Client, faults: Faults) -> None:
    """Given rows that all take a while, then three are under way until one has succeeded."""
    faults.add(Fault("openai", delay_ms=150))

    found = _ask(client, 9)

    runs = sorted((client.runs.get(id) for id in found["run_id"]), key=lambda run: run.created_at)
    first_end = min(run.completed_at for run in runs if run.completed_at is not None)
    assert sum(run.created_at < first_end for run in runs) == 3


@pytest.mark.parametrize("given", [0, -1, True, "never", None])
def test_a_limit_that_is_none_is_refused(client: Client, faults: Faults, given: Any) -> None:
    """Given a value that says nothing, then no row is begun."""
    with pytest.raises(RequestError, match="on_error is"):
        _ask(client, 3, on_error=given)

    assert not _count_calls(faults)


def test_the_end_tells_why_rows_failed(
    client: Client, faults: Faults, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given rows that failed, then the last lines count the reasons and have an error of each."""
    faults.fail("openai", status=400)

    _ask(client, 30, progress=True)

    line, rejected, stopped = capsys.readouterr().err.strip().splitlines()
    assert line.startswith(
        "30 of 30 rows, 10 failed (PROVIDER_REJECTED), 20 not begun (stopped), $0"
    )
    assert rejected.startswith("PROVIDER_REJECTED: ")
    assert stopped.startswith("stopped: ")
    assert "set on_error" in stopped
