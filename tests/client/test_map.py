"""Every row of a table a run: `client.map`."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
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
    sure: bool
    share: float


def _classify(client: Client, rows: Any = TEXTS, **more: Any) -> pd.DataFrame:
    given = {"objective": "Classify: {text}", "output_model": Label, "progress": False, **more}
    return client.map("llm.generate", rows, **given)


def _sum_usage(client: Client) -> float:
    return sum(run.cost_incurred_usd for run in client.runs)


def test_each_row_comes_back_in_its_place_with_typed_columns(client: Client) -> None:
    """Given a frame and a model, then its fields are columns of their types, by the same index."""
    found = _classify(client)

    assert list(found.index) == ["a", "b", "c", "d"]
    assert dict(found.dtypes.astype(str)) == {
        "label": "string", "count": "Int64", "sure": "boolean", "share": "Float64",
        "status": "string", "cost_usd": "Float64", "latency_ms": "Int64", "run_id": "string",
        "cached": "boolean", "error": "string",
    }  # fmt: skip
    assert set(found["status"]) == {"completed"}
    assert found["error"].isna().all()
    inputs = [client.runs.get(id).input["objective"] for id in found["run_id"]]
    assert inputs == [f"Classify: {text}" for text in TEXTS["text"]]


def test_the_same_call_pays_nothing_twice_in_another_process(tmp_path: Path) -> None:
    """Given a map of some rows, when a new client asks for all, then only the rest is paid."""
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


def test_a_killed_kernel_is_resumed_by_the_same_call(
    tmp_path: Path, find_url: Callable[[Path], str | None]
) -> None:
    """Given a process killed amid its rows, then the same call has all rows, each paid once."""
    words = [sys.executable, "-c", _KILLED, str(tmp_path), find_url(tmp_path) or ""]
    killed = subprocess.run(words, check=False)
    with Client.local(tmp_path, sandbox=True) as client:
        rows = [{"n": n} for n in range(20)]
        found = client.map("llm.generate", rows, objective="On {n}", progress=False)
        made = [run.input["objective"] for run in client.runs if not run.cached]

    assert killed.returncode == -signal.SIGKILL
    assert set(found["status"]) == {"completed"}
    assert found["cached"].sum() >= 5
    assert sorted(made) == sorted(f"On {n}" for n in range(20))


def test_what_is_there_is_used_again_whoever_would_be_asked_now(client: Client) -> None:
    """Given rows of a provider that is connected no longer, then the same call pays none anew."""
    first = _classify(client, TEXTS[:3], tags=["wet"])
    used = {client.runs.get(id).provider for id in first["run_id"]}
    for connection in client.connections.list():
        if connection.record.provider in used:
            client.connections.delete(connection.id)
    again = _classify(client)

    assert list(again["cached"]) == [True, True, True, False]
    assert list(again["run_id"][:3]) == list(first["run_id"])
    assert list(again["cost_usd"][:3]) == list(first["cost_usd"])
    assert client.runs.get(again["run_id"]["d"]).provider not in used
    assert len(client.runs.list(tag=again.attrs["tag"])) == 4
    assert len(client.runs.list(tag=["wet", again.attrs["tag"]])) == 3


def test_another_question_or_another_provider_is_another_call(client: Client) -> None:
    """Given another template or option, then nothing of the first call stands in for its rows."""
    first = _classify(client)
    for more in ({"objective": "Sort: {text}"}, {"options": {"provider": "openai"}}):
        other = _classify(client, **more)
        assert other.attrs["tag"] != first.attrs["tag"]
        assert not other["cached"].any()
    assert not _classify(client, options={"cache": False})["cached"].any()


def test_a_slow_row_does_not_hold_up_the_others(tmp_path: Path) -> None:
    """Given a first row that takes long, then all others are begun before it is done."""
    faults = Faults()
    with Client.local(tmp_path, faults=faults) as client:
        faults.latency("openai", mean_ms=700, times=1)
        rows = [{"text": f"text {n}"} for n in range(6)]
        found = _classify(client, rows, concurrency=2, options={"provider": "openai"})
        runs = [client.runs.get(id) for id in found["run_id"]]

    slow = max(runs, key=lambda run: run.latency_ms or 0)
    assert slow.completed_at is not None
    assert all(run.created_at < slow.completed_at for run in runs)
    assert [run.input["objective"] for run in runs] == [f"Classify: text {n}" for n in range(6)]


def test_one_budget_counts_what_was_paid_before(client: Client) -> None:
    """Given rows that were paid, then the budget of the next call has only the rest for others."""
    first = _classify(client, TEXTS[:2], max_tokens=50)
    paid = float(first["cost_usd"].sum())
    found = _classify(client, max_tokens=50, max_cost_usd=paid * 1.01)

    assert list(found["cached"][:2]) == [True, True]
    assert list(found["status"]) == ["completed", "completed", "not begun", "not begun"]


class Dated(BaseModel):
    """Fields of more types."""

    day: date | None
    count: Annotated[int, Field(ge=0)] | None


def test_columns_have_the_types_of_fields(client: Client) -> None:
    """Given fields that are dates or bounded numbers, then their columns are typed, also empty."""
    found = _classify(client, [{"text": None}], output_model=Dated)
    assert dict(found.dtypes.astype(str).head(2)) == {"day": "datetime64[us]", "count": "Int64"}
    plain = client.map("llm.generate", TEXTS, objective="On {text}", progress=False)
    assert plain["text"].dtype == "string"


def test_equal_rows_are_paid_once(client: Client) -> None:
    """Given a text that comes twice, then the second has the first one's answer at no cost."""
    found = _classify(client, [{"text": "tea"}, {"text": "tea"}])

    assert found["label"][0] == found["label"][1]
    assert sorted(found["cost_usd"] > 0) == [False, True]


def test_one_budget_covers_all_rows_and_says_what_is_left(client: Client) -> None:
    """Given a budget for some rows, then the others are not begun, and more money resumes."""
    bound = client.route("llm.generate", {"objective": "Classify: salt", "max_tokens": 50})
    limit = (bound.record.reservation_usd or 0.0) * 1.2

    found = client.map(
        "llm.generate",
        [{"text": f"text {n}"} for n in range(60)],
        objective="Classify: {text}",
        max_tokens=50,
        max_cost_usd=limit,
        progress=False,
    )

    ended = found[found["status"] == "completed"]
    rest = found[found["status"] == "not begun"]
    assert 0 < len(ended) < 60
    assert len(ended) + len(rest) == 60
    assert float(ended["cost_usd"].sum()) <= limit
    assert rest["error"].str.contains("US dollars are left; raise max_cost_usd").all()


def test_failed_rows_keep_their_error_and_are_tried_again(tmp_path: Path) -> None:
    """Given a vendor that refuses, then its row has the error; the same call does it again."""
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


def test_an_empty_cell_costs_nothing(client: Client) -> None:
    """Given a cell without a value, then its row says so and the others are run."""
    found = _classify(client, [{"text": "tea"}, {"text": None}, {"text": float("nan")}])

    assert list(found["status"]) == ["completed", "not begun", "not begun"]
    assert "`text` is empty" in found["error"][1]


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        ("Classify: {txt}", "did you mean `text`?"),
        ("Classify: {zzz}", "there are text, n"),
        ("Classify: {text", "cannot be read"),
        ("Classify: {n:03d}", "without a format"),
    ],
)
def test_a_template_that_cannot_be_filled_is_refused_before(
    client: Client, objective: str, words: str
) -> None:
    """Given a template with a mistake, then nothing is begun and the message says what it is."""
    with pytest.raises(RequestError) as refused:
        _classify(client, objective=objective)

    assert words in str(refused.value)
    assert not len(client.runs.list())


def test_what_is_wrong_with_every_row_is_raised(client: Client) -> None:
    """Given a field that the capability does not have, then the call fails, not each row."""
    with pytest.raises(RequestError, match="objectiv"):
        client.map("llm.generate", TEXTS, objectiv="Classify: {text}", progress=False)


@pytest.mark.usefixtures("heed_interrupts")
def test_an_interrupt_is_one_line_and_the_same_call_goes_on(tmp_path: Path) -> None:
    """Given an interrupt while rows are under way, then they go on and are not paid again."""
    faults = Faults()
    with Client.local(tmp_path, faults=faults) as client:
        faults.add(Fault("minimax", "chat/completions", delay_ms=400, times=3))

        def interrupt() -> None:
            wait_until(lambda: len(client.runs.list()) == 3)
            signal.raise_signal(signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt, match="3 runs continue") as interrupted:
            _classify(client, TEXTS[:3])
        for run in client.runs.list():
            run.wait(progress=False)
        found = _classify(client, TEXTS[:3])

    assert len(interrupted.value._render_traceback_()) == 1  # type: ignore[attr-defined]
    assert found["cached"].all()


async def test_the_async_client_maps_too(tmp_path: Path) -> None:
    """Given the async client and no model, then the output's own fields are columns."""
    async with AsyncClient.local(tmp_path, sandbox=True) as client:
        found = await client.map(
            "llm.generate", ({"n": n} for n in range(3)), objective="On {n}", progress=False
        )

    assert set(found["status"]) == {"completed"}
    assert found["text"].str.len().min() > 0
