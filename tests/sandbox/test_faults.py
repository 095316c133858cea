"""Faults that a caller orders: their effects on answers, their timing, and the log."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.sandbox.conftest import client_for
from tests.support.timing import PATIENCE_S
from toolkit import Client
from toolkit.sandbox import Faults, create_app

CHAT = "/openai/v1/chat/completions"
BODY = {"model": "gpt-6-luna", "messages": [{"role": "user", "content": "One line about tea"}]}


@dataclass
class FaultClock:
    """Seconds that advance only when a test advances them."""

    now: float = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def clock() -> FaultClock:
    """A clock that a test advances."""
    return FaultClock()


@pytest.fixture
def faults(clock: FaultClock) -> Faults:
    """A script without faults."""
    return Faults(seed=3, clock=clock)


async def chat(faults: Faults, times: int = 1) -> list[httpx.Response]:
    """Return answers of the openai wire under these faults."""
    async with client_for(create_app(faults=faults), "OPENAI_API_KEY") as client:
        return [await client.post(CHAT, json=BODY) for _ in range(times)]


async def test_fails_a_share_of_the_calls() -> None:
    """Given a share of 20 %, then about that share of calls fails, the same calls for a seed."""
    seen = []
    for _ in range(2):
        faults = Faults(seed=5)
        faults.fail("openai", status=429, share=0.2)
        seen.append([answer.status_code for answer in await chat(faults, 100)])
    assert seen[0] == seen[1]
    assert 10 <= seen[0].count(429) <= 32
    assert set(seen[0]) == {200, 429}


async def test_rate_limit_is_a_token_bucket(faults: Faults, clock: FaultClock) -> None:
    """Given 2 calls a second and a burst of 3, then the fourth call has a Retry-After."""
    faults.rate_limit("openai", per_s=2, burst=3)
    answers = await chat(faults, 4)
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[3].headers["retry-after"] == "1"
    assert answers[3].headers["retry-after-ms"] == "500"
    clock.now += 0.5
    assert [a.status_code for a in await chat(faults, 2)] == [200, 429]


async def test_outage_starts_and_ends(faults: Faults, clock: FaultClock) -> None:
    """Given an outage from 10 s to 20 s, then only calls in between fail."""
    faults.outage("openai", from_s=10, until_s=20)
    seen = []
    for clock.now in (0, 10, 19, 20):
        seen += [answer.status_code for answer in await chat(faults)]
    assert seen == [200, 503, 503, 200]


async def test_mangles_answers(faults: Faults) -> None:
    """Given mangled answers, then the first is truncated, the second garbage, the third slow."""
    (plain,) = await chat(Faults(seed=3))
    for how in ("truncate", "garbage", "drip"):
        faults.mangle("openai", how, times=1, drip_s=0.01)  # type: ignore[arg-type]
    cut, noise, slow = await chat(faults, 3)
    assert plain.content.startswith(cut.content)
    assert len(cut.content) < len(plain.content)
    assert b"choices" not in noise.content
    assert slow.json() == plain.json()


async def test_log_is_a_table(faults: Faults) -> None:
    """Given calls, then the log has a row for each, with its fault."""
    faults.fail("openai", status=500, times=1)
    await chat(faults, 2)
    frame = faults.to_frame()
    assert list(frame["status"]) == [500, 200]
    assert list(frame["fault"]) == ["500", ""]
    assert list(frame["billed"]) == [False, True]
    assert len(Faults().to_frame().columns) == len(frame.columns)


SCRIPT = """
[[fault]]
vendor = "openai"
status = 429
share = 0.5
headers = { Retry-After = "2" }

[[fault]]
vendor = "*"
delay_ms = 5
"""


def test_reads_faults_from_a_file(tmp_path: Path) -> None:
    """Given a TOML file, then its faults are ordered; an unknown field is named."""
    path = tmp_path / "faults.toml"
    path.write_text(SCRIPT, encoding="utf-8")
    first, second = Faults.load(path).list_faults()
    assert (first.status, first.share, second.vendor) == (429, 0.5, "*")
    path.write_text("[[fault]]\nvendor = 'openai'\ncolour = 1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="colour"):
        Faults.load(path)


def test_fault_of_a_vendor_affects_all_its_wires(faults: Faults) -> None:
    """Given a fault for a vendor, then it affects all its wires; for a wire, only that wire."""
    wires = ("runpod", "runpod-jobs", "runpod-pods")
    for name, met in (
        ("runpod", wires),
        ("runpod-jobs", wires[1:2]),
        ("runpod-api", wires[:1]),
        ("*", (*wires, "openai")),
    ):
        faults.outage(name)
        seen = [w for w in (*wires, "openai") if faults.draw_effects(w, "/any").fault is not None]
        assert seen == list(met)
        faults.clear(name)
        assert len(faults) == 0


ORDERS: dict[str, Callable[[Faults, str], object]] = {
    "fail": lambda faults, name: faults.fail(name, status=500),
    "latency": lambda faults, name: faults.latency(name, 5),
    "mangle": lambda faults, name: faults.mangle(name, "drop"),
    "rate_limit": lambda faults, name: faults.rate_limit(name, 1),
    "outage": lambda faults, name: faults.outage(name),
    "refuse_key": lambda faults, name: faults.refuse_key(name),
    "price": lambda faults, name: faults.price(name, 2),
    "project_tier": lambda faults, name: faults.project_tier(name, "priority"),
    "say": lambda faults, name: faults.say(name, "x"),
    "clear": lambda faults, name: faults.clear(name),
}


@pytest.mark.parametrize("order", ORDERS)
def test_rejects_a_misspelt_vendor(faults: Faults, order: str) -> None:
    """Given an unknown vendor, then the error has the nearest name and all names."""
    with pytest.raises(ValueError, match=r"'antropic'.*'anthropic'\?.*openai.*runpod-jobs"):
        ORDERS[order](faults, "antropic")
    assert len(faults) == 0


async def test_reports_a_misspelt_vendor_in_a_file_or_a_request(tmp_path: Path) -> None:
    """Given a file or a request with an unknown vendor, then the error has the nearest name."""
    path = tmp_path / "faults.toml"
    path.write_text("[[fault]]\nvendor = 'opnai'\nstatus = 500\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"fault 1.*Did you mean 'openai'"):
        Faults.load(path)
    async with client_for(create_app()) as client:
        answer = await client.post("/_sandbox/faults", json={"vendor": "opnai", "status": 500})
    assert answer.status_code == 400
    assert "Did you mean 'openai'?" in answer.json()["error"]


PRICED = {"prompt": "the sea", "width": 512, "height": 512}


def test_faults_change_while_a_client_runs(tmp_path: Path) -> None:
    """Given an embedded client, then faults can be ordered and removed while it runs."""
    faults = Faults()
    with Client.local(tmp_path, faults=faults) as client:
        fields: dict[str, Any] = {"objective": "One line on tea"}
        assert client.runs.create("llm.generate", fields).wait().provider == "minimax"
        faults.refuse_key("minimax")
        second = client.runs.create("llm.generate", fields).wait()
        assert second.attempts[0].provider == "minimax"
        assert second.provider != "minimax"
        faults.clear()
        before = client.runs.create("image.generate", PRICED).wait().record.cost_usd
        faults.price("runpod-jobs", 3.0)
        after = client.runs.create("image.generate", PRICED).wait().record.cost_usd
        assert after == pytest.approx(3 * before, rel=1e-3)
    assert {"minimax", "runpod-jobs"} <= set(faults.to_frame()["vendor"])


MODELS = ["anthropic", "aws", "google", "minimax", "openai", "runpod"]


def test_model_says_the_ordered_text(tmp_path: Path) -> None:
    """Given texts to say, then each vendor answers with its own text, streamed or not."""
    faults = Faults()
    with Client.local(tmp_path, faults=faults) as client:
        default = client.runs.create("llm.generate", {"objective": "Tea"}).wait().text
        for vendor in MODELS:
            faults.say(vendor, f"{vendor}, at once.", f"{vendor}, piece by piece, as it comes.")
        for vendor in MODELS:
            run = client.runs.create("llm.generate", {"objective": "Tea"}, provider=vendor).wait()
            assert run.text == f"{vendor}, at once."
            assert run.cost_usd > 0
            live = client.runs.create(
                "llm.generate", {"objective": "Tea"}, provider=vendor, stream=True
            )
            assert "".join(live.stream()) == f"{vendor}, piece by piece, as it comes."
        assert client.runs.create("llm.generate", {"objective": "Tea"}).wait().text == default
        faults.say("minimax", "Cleared.")
        faults.clear()
        assert client.runs.create("llm.generate", {"objective": "Tea"}).wait().text == default


@pytest.mark.parametrize("how", ["truncate", "garbage", "drip", "hang", "drop"])
def test_mangled_answer_fails_with_a_code(tmp_path: Path, how: str) -> None:
    """Given a vendor with mangled answers, then a pinned run fails in time with a code."""
    from toolkit.settings import Settings, Timeouts, VendorSettings

    vendors = {"minimax": VendorSettings(timeouts=Timeouts(total_s=0.2))}
    settings = Settings(data_dir=tmp_path, vendors=vendors, retries=1, retry_base_s=0.01)
    faults = Faults()
    faults.mangle("minimax", how, drip_s=60.0)  # type: ignore[arg-type]
    with Client.local(settings=settings, faults=faults) as client:
        run = client.runs.create("llm.generate", {"objective": "Tea"}, provider="minimax")
        failed = run.wait(check=False, timeout=PATIENCE_S)
    codes = {"truncate": "BAD_RESPONSE", "garbage": "BAD_RESPONSE", "drop": "UNAVAILABLE"}
    assert (failed.status, failed.error.code) == ("failed", f"PROVIDER_{codes.get(how, 'TIMEOUT')}")


def test_answers_of_all_vendors_include_vendors_that_are_added_later() -> None:
    """Given an answer for all vendors, when a compatible vendor is added, then it gives it, too."""
    faults = Faults()
    faults.answer("*", "tea", "Yes.")
    faults.add_vendors(["groq"])
    assert faults.take_text("groq", "A line on tea") == "Yes."
