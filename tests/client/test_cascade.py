"""`client.map` with a cascade: a cheap model, a sample, and rows that a dear model answers."""

import json
import math
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pytest
from pydantic import BaseModel
from typer.testing import CliRunner

from tests.support.timing import wait_until
from toolkit import AsyncClient, Client
from toolkit.cli import app
from toolkit.contract.errors import RequestError
from toolkit.sandbox import Fault, Faults

ROWS = 150
CHEAP, DEAR = "deepseek/deepseek-flash", "anthropic/claude-opus-5-5"
WORDS = ("tea", "salt", "tide", "rope", "sand")
# In the order of preparation; the cheap model errs on the rows of one word.
TEXTS = [f"{WORDS[n % 5]}, message {n}." for n in range(ROWS)]


class Topic(BaseModel):
    """The topic of a message."""

    topic: Literal["dry", "wet"]
    place: str


def _prepare(faults: Faults, wrong: str = "") -> None:
    for word in WORDS:
        right = "wet" if word in ("tea", "tide") else "dry"
        cheap = {"wet": "dry", "dry": "wet"}[right] if word == wrong else right
        for vendor, topic in (("deepseek", cheap), ("anthropic", right), ("openai", cheap)):
            place = " The  Harbour." if vendor == "anthropic" else "the harbour"
            faults.answer(vendor, f"{word}, message", json.dumps({"topic": topic, "place": place}))


def _label(client: Any, rows: Any = None, **options: Any) -> Any:
    arguments: dict[str, Any] = {
        "objective": "Classify: {text}",
        "output_model": Topic,
        "max_tokens": 60,
        "progress": False,
        "cascade": (CHEAP, DEAR),
        "agreement": 0.9,
        **options,
    }
    return client.map("llm.generate", TEXTS if rows is None else rows, **arguments)


def _count_calls(faults: Faults) -> Counter[str]:
    return Counter(call.vendor.partition("-")[0] for call in faults.calls if call.billed)


@pytest.fixture
def faults() -> Faults:
    """Answers of the simulated models, and the log of calls."""
    return Faults(vendors=["deepseek"])


@pytest.fixture
def client(tmp_path: Path, faults: Faults) -> Any:
    """A client whose simulated vendors have these faults."""
    with Client.local(tmp_path, faults=faults) as client:
        yield client


def test_agreeing_models_need_only_the_sample(client: Client, faults: Faults) -> None:
    """Given models that agree field by field, then the dear model answers the sample alone."""
    _prepare(faults)
    table = _label(client)
    summary = table.attrs["cascade"]
    calls = _count_calls(faults)

    assert not table["escalated"].any()
    assert calls == {"deepseek": ROWS, "anthropic": int(table["sampled"].sum())}
    assert 0 < table["sampled"].sum() < ROWS / 2
    assert summary["low"] >= 0.9
    assert summary["high"] == 1.0
    assert summary["models"] == [CHEAP, DEAR]
    assert table["confidence"].between(0, 1).all()
    assert summary["threshold"] == table["confidence"].min()
    paid = sum(job.cost_incurred_usd for job in client.jobs)
    assert table["cost_usd"].sum() == pytest.approx(paid)
    assert summary["cost_usd"] == pytest.approx(paid)


def test_escalates_rows_below_the_threshold(client: Client, faults: Faults) -> None:
    """Given a cheap model that errs on a fifth, then the target is met, by the dear answers."""
    _prepare(faults, wrong="salt")
    table = _label(client)
    right = ["wet" if text.startswith(("tea", "tide")) else "dry" for text in TEXTS]
    escalated, kept = table[table["escalated"]], table[~table["escalated"]]

    assert (table["topic"] == right).mean() >= 0.9
    assert len(escalated) > 0
    if len(kept):
        assert kept["confidence"].min() >= escalated["confidence"].max()
    asked = table["escalated"] | table["sampled"]
    assert _count_calls(faults)["anthropic"] == asked.sum()
    dear = [client.jobs.get(id).model for id in table[asked]["job_id"]]
    assert all(str(model).startswith("claude") for model in dear)
    assert table.attrs["cascade"]["escalated"] == len(escalated)


def test_second_call_and_new_client_pay_nothing(tmp_path: Path, faults: Faults) -> None:
    """Given a finished cascade, when another client repeats the call, then no vendor is called."""
    _prepare(faults, wrong="rope")
    with Client.local(tmp_path, faults=faults) as client:
        first = _label(client, max_cost_usd=2.0)
    faults.forget_calls()
    with Client.local(tmp_path, faults=faults) as client:
        again = _label(client, max_cost_usd=2.0)

    assert not _count_calls(faults)
    assert again["cached"].all()
    pd.testing.assert_frame_equal(
        first.drop(columns=["cached", "latency_ms"]), again.drop(columns=["cached", "latency_ms"])
    )
    assert first.attrs["cascade"] == again.attrs["cascade"]


def test_one_budget_covers_all_parts(client: Client, faults: Faults) -> None:
    """Given a budget for half of the sample, then no row is answered; more money goes on."""
    _prepare(faults, wrong="rope")
    first = _label(client, max_cost_usd=0.02)
    spent = sum(job.cost_incurred_usd for job in client.jobs)
    calls = _count_calls(faults)
    full = _label(client, max_cost_usd=2.0)

    assert spent <= 0.02
    assert 0 < calls["anthropic"] < full["sampled"].sum()
    assert set(first[~first["sampled"]]["status"]) == {"not begun"}
    assert first["error"].str.contains("BUDGET_EXCEEDED").any()
    assert first.attrs["cascade"]["agreement"] is None
    assert set(full["status"]) == {"completed"}
    assert _count_calls(faults) == {
        "deepseek": ROWS,
        "anthropic": (full["escalated"] | full["sampled"]).sum(),
    }


def test_samples_stand_in_for_log_probabilities(client: Client, faults: Faults) -> None:
    """Given a cheap model without log-probabilities, then its confidence is a share of samples."""
    _prepare(faults)
    table = _label(client, cascade=("openai/gpt-6-luna", DEAR))
    chat = sum("chat" in call.path for call in faults.calls if call.billed)

    assert set(table["confidence"]) <= {0.0, 0.5, 1.0}
    assert chat == 3 * ROWS
    assert table["cost_usd"].sum() == pytest.approx(
        sum(job.cost_incurred_usd for job in client.jobs)
    )


def test_compares_texts_in_normal_form(client: Client, faults: Faults) -> None:
    """Given texts that differ in case, space and a full stop, then the models agree."""
    faults.answer("deepseek", "Classify", "Wet  Weather.")
    faults.answer("anthropic", "Classify", "wet weather")
    table = _label(client, output_model=None)

    assert not table["escalated"].any()
    assert table.attrs["cascade"]["high"] == 1.0
    assert set(table["text"]) == {"Wet  Weather.", "wet weather"}


def test_tiers_name_the_cheapest_connected_models(client: Client, faults: Faults) -> None:
    """Given quality tiers, then each is its cheapest model, three answers counted."""
    table = _label(client, TEXTS[:30], cascade=("economy", "premium"), output_model=None)
    cheap, dear = table.attrs["cascade"]["models"]
    route = client.route("llm.generate", {"objective": "On tea"}, optimize_for="cost")
    qualities = {f"{c.provider}/{c.model}": c.quality for c in route.candidates}

    assert (qualities[cheap], qualities[dear]) == (1, 3)
    assert {call.vendor.partition("-")[0] for call in faults.calls} >= {
        cheap.partition("/")[0], dear.partition("/")[0],
    }  # fmt: skip


def test_a_failed_row_of_the_cheap_model_is_escalated(client: Client, faults: Faults) -> None:
    """Given rows that the cheap model does not answer, then the dear model answers them."""
    _prepare(faults)
    faults.add(Fault("deepseek", body={"error": {"message": "no"}}, status=400, times=3))
    table = _label(client)

    assert set(table["status"]) == {"completed"}
    assert table["confidence"].isna().sum() == 3
    assert table[table["confidence"].isna()]["escalated"].all()


def test_empty_cells_are_skipped(client: Client, faults: Faults) -> None:
    """Given an empty cell, then neither model is asked, and it is no part of the agreement."""
    _prepare(faults)
    rows = pd.DataFrame({"text": [None, *TEXTS[:60], TEXTS[0]]})
    table = _label(client, rows)

    assert table["status"].iloc[0] == "not begun"
    assert "is empty" in table["error"].iloc[0]
    assert table.attrs["cascade"]["rows"] == 61
    assert table["topic"].iloc[1] == table["topic"].iloc[61]
    assert _count_calls(faults)["deepseek"] == 60


async def test_async_client_runs_a_cascade(tmp_path: Path, faults: Faults) -> None:
    """Given the async client, then its table has the same columns."""
    _prepare(faults)
    async with AsyncClient.local(tmp_path, faults=faults) as client:
        table = await _label(client, TEXTS[:40])

    assert {"confidence", "escalated", "sampled"} <= set(table.columns)
    assert set(table["status"]) == {"completed"}


def test_shows_the_agreement(
    client: Client, faults: Faults, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given progress, then a line at the end shows agreement, threshold and cost."""
    _prepare(faults)
    _label(client, TEXTS[:40], progress=True)
    last = capsys.readouterr().err.strip().splitlines()[-1]

    assert f"agree with {DEAR}" in last
    assert "rows were escalated below a confidence of" in last


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cascade": ("economy",)}, "two different models"),
        ({"cascade": "economy"}, "two different models"),
        ({"agreement": 95}, "between 0 and 1"),
        ({"options": {"provider": "openai"}}, "leave out"),
    ],
)
def test_rejects_wrong_arguments(client: Client, options: dict[str, Any], words: str) -> None:
    """Given a wrong argument, then the error says how to correct it, and nothing is asked."""
    with pytest.raises(TypeError, match=words):
        _label(client, **options)


def test_rejects_a_tier_without_a_model(client: Client) -> None:
    """Given providers without a premium model, then the error names the tier."""
    with pytest.raises(RequestError, match="can be `premium`"):
        _label(client, cascade=("economy", "premium"), options={"only": ["deepseek"]})


def test_confidence_is_the_product_over_the_tokens(client: Client, faults: Faults) -> None:
    """Given log-probabilities of two tokens, then the confidence is the exponent of their sum."""
    rows = [{"token": t, "logprob": log, "bytes": None} for t, log in (("te", -0.1), ("a", -0.2))]
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "tea"},
        "finish_reason": "stop",
        "logprobs": {"content": rows},
    }
    faults.add(Fault("deepseek", path_contains="chat", body={"id": "x", "choices": [choice]}))
    fields = {"objective": "Say tea", "confidence": True}
    run = client.runs.create("llm.generate", fields, provider="deepseek").wait(progress=False)

    assert run.output is not None
    assert run.output["confidence"] == pytest.approx(math.exp(-0.3))


@pytest.mark.usefixtures("heed_interrupts")
def test_goes_on_after_an_interrupt(client: Client, faults: Faults) -> None:
    """Given an interrupt while the dear model answers, then the same call pays nothing twice."""
    _prepare(faults, wrong="sand")
    faults.latency("anthropic", mean_ms=100, times=20)

    def interrupt() -> None:
        wait_until(lambda: _count_calls(faults)["anthropic"] >= 5)
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt, match="call again with the same arguments"):
        _label(client, max_cost_usd=2.0)
    table = _label(client, max_cost_usd=2.0)

    assert set(table["status"]) == {"completed"}
    assert _count_calls(faults) == {
        "deepseek": ROWS,
        "anthropic": (table["escalated"] | table["sampled"]).sum(),
    }


def test_command_writes_the_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given the command with a cascade, then the file has the columns and stderr the agreement."""
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"text": TEXTS[:20]}).to_csv("in.csv", index=False)
    line = ["map", "llm.generate", "in.csv", "objective=On {text}", "--out", "out.csv", "--sandbox"]
    pair = ["--cascade", "deepseek,anthropic", "--agreement", "0.8"]
    done = CliRunner().invoke(app, [*line, *pair], catch_exceptions=False)
    wrong = CliRunner().invoke(app, [*line, "--cascade", "deepseek"])

    assert done.exit_code == 0
    assert "agree with anthropic" in done.stderr
    assert {"confidence", "escalated", "sampled"} <= set(pd.read_csv("out.csv").columns)
    assert wrong.exit_code == 2
    assert "two models" in wrong.stderr
