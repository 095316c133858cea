"""Faults to order: what each does to an answer, how often, when, and what the log says."""

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
    """Seconds that pass when they are told to."""

    now: float = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


@pytest.fixture
def clock() -> FaultClock:
    """A clock that stands still."""
    return FaultClock()


@pytest.fixture
def faults(clock: FaultClock) -> Faults:
    """A script with nothing in it yet."""
    return Faults(seed=3, clock=clock)


async def chat(faults: Faults, times: int = 1) -> list[httpx.Response]:
    """Answers of the openai wire, under these faults."""
    async with client_for(create_app(faults=faults), "OPENAI_API_KEY") as client:
        return [await client.post(CHAT, json=BODY) for _ in range(times)]


async def test_a_share_is_met_as_the_seed_says() -> None:
    """Given a share of 20 %, then about so many calls fail, and the same ones each time."""
    seen = []
    for _ in range(2):
        faults = Faults(seed=5)
        faults.fail("openai", status=429, share=0.2)
        seen.append([answer.status_code for answer in await chat(faults, 100)])
    assert seen[0] == seen[1]
    assert 10 <= seen[0].count(429) <= 32
    assert set(seen[0]) == {200, 429}


async def test_a_rate_limit_is_a_token_bucket(faults: Faults, clock: FaultClock) -> None:
    """Given 2 calls a second and a burst of 3, then the fourth waits as Retry-After says."""
    faults.rate_limit("openai", per_s=2, burst=3)
    answers = await chat(faults, 4)
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[3].headers["retry-after"] == "1"
    assert answers[3].headers["retry-after-ms"] == "500"
    clock.now += 0.5
    assert [a.status_code for a in await chat(faults, 2)] == [200, 429]


async def test_an_outage_has_a_beginning_and_an_end(faults: Faults, clock: FaultClock) -> None:
    """Given an outage from 10 s to 20 s, then calls fail in between and at no other time."""
    faults.outage("openai", from_s=10, until_s=20)
    seen = []
    for clock.now in (0, 10, 19, 20):
        seen += [answer.status_code for answer in await chat(faults)]
    assert seen == [200, 503, 503, 200]


async def test_spoilt_answers(faults: Faults) -> None:
    """Given spoilt answers, then one is cut off, one is noise, and one is whole but slow."""
    (whole,) = await chat(Faults(seed=3))
    for how in ("truncate", "garbage", "drip"):
        faults.mangle("openai", how, times=1, drip_s=0.01)  # type: ignore[arg-type]
    cut, noise, slow = await chat(faults, 3)
    assert whole.content.startswith(cut.content)
    assert len(cut.content) < len(whole.content)
    assert b"choices" not in noise.content
    assert slow.json() == whole.json()


async def test_a_key_that_is_refused(faults: Faults) -> None:
    """Given a revoked key, then every call is refused in the vendor's words until it is cleared."""
    faults.refuse_key("openai")
    (answer,) = await chat(faults)
    assert (answer.status_code, "message" in answer.json()["error"]) == (401, True)
    faults.clear("openai")
    assert (await chat(faults))[0].status_code == 200


async def test_the_log_is_a_table(faults: Faults) -> None:
    """Given calls, then the log has a row for each, and names the fault that it met."""
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


def test_a_script_is_read_from_a_file(tmp_path: Path) -> None:
    """Given a TOML file, then its faults are ordered; a wrong field is named."""
    path = tmp_path / "faults.toml"
    path.write_text(SCRIPT, encoding="utf-8")
    first, second = Faults.load(path).list_faults()
    assert (first.status, first.share, second.vendor) == (429, 0.5, "*")
    path.write_text("[[fault]]\nvendor = 'openai'\ncolour = 1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="colour"):
        Faults.load(path)


def test_a_vendor_has_every_wire_of_it(faults: Faults) -> None:
    """Given faults for a vendor, then each of its wires meets them; for a wire, that one alone."""
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


def test_an_outage_of_a_vendor_with_several_wires_is_felt(tmp_path: Path) -> None:
    """Given an outage of runpod, then a picture that is asked of it fails as one of an outage."""
    from toolkit.settings import Settings

    faults = Faults()
    faults.outage("runpod")
    settings = Settings(data_dir=tmp_path, retries=0, max_cooldown_wait_s=0)
    with Client.local(settings=settings, faults=faults) as client:
        done = client.runs.create("image.generate", PRICED).wait(check=False, timeout=PATIENCE_S)
    assert (done.status, done.error.code) == ("failed", "PROVIDER_UNAVAILABLE")
    assert "503" in faults.to_frame()[["fault"]].to_string()


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
def test_a_misspelt_vendor_is_refused(faults: Faults, order: str) -> None:
    """Given a name that no vendor has, then each order is refused with the nearest and all."""
    with pytest.raises(ValueError, match=r"'antropic'.*'anthropic'\?.*openai.*runpod-jobs"):
        ORDERS[order](faults, "antropic")
    assert len(faults) == 0


async def test_a_misspelt_vendor_in_a_file_or_a_request(tmp_path: Path) -> None:
    """Given a file or a request with a misspelt vendor, then the answer says where and which."""
    path = tmp_path / "faults.toml"
    path.write_text("[[fault]]\nvendor = 'opnai'\nstatus = 500\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"fault 1.*Did you mean 'openai'"):
        Faults.load(path)
    async with client_for(create_app()) as client:
        answer = await client.post("/_sandbox/faults", json={"vendor": "opnai", "status": 500})
    assert answer.status_code == 400
    assert "Did you mean 'openai'?" in answer.json()["error"]


PRICED = {"prompt": "the sea", "width": 512, "height": 512}


def test_a_notebook_changes_the_weather(tmp_path: Path) -> None:
    """Given an embedded client with faults, then they can be ordered and taken back meanwhile."""
    faults = Faults()
    with Client.local(tmp_path, faults=faults) as client:
        asked: dict[str, Any] = {"objective": "One line on tea"}
        assert client.runs.create("llm.generate", asked).wait().provider == "minimax"
        faults.refuse_key("minimax")
        second = client.runs.create("llm.generate", asked).wait()
        assert second.attempts[0].provider == "minimax"
        assert second.provider != "minimax"
        faults.clear()
        before = client.runs.create("image.generate", PRICED).wait().record.cost_usd
        faults.price("runpod-jobs", 3.0)
        after = client.runs.create("image.generate", PRICED).wait().record.cost_usd
        assert after == pytest.approx(3 * before, rel=1e-3)
    assert {"minimax", "runpod-jobs"} <= set(faults.to_frame()["vendor"])


MODELS = ["anthropic", "aws", "google", "minimax", "openai", "runpod"]


def test_every_model_says_what_it_is_told_to(tmp_path: Path) -> None:
    """Given texts to say, then each vendor answers with its own, streamed or not, and pays it."""
    faults = Faults()
    with Client.local(tmp_path, faults=faults) as client:
        own = client.runs.create("llm.generate", {"objective": "Tea"}).wait().text
        for vendor in MODELS:
            faults.say(vendor, f"{vendor}, at once.", f"{vendor}, piece by piece, as it comes.")
        for vendor in MODELS:
            said = client.runs.create("llm.generate", {"objective": "Tea"}, provider=vendor).wait()
            assert said.text == f"{vendor}, at once."
            assert said.cost_usd > 0
            live = client.runs.create(
                "llm.generate", {"objective": "Tea"}, provider=vendor, stream=True
            )
            assert "".join(live.stream()) == f"{vendor}, piece by piece, as it comes."
        assert client.runs.create("llm.generate", {"objective": "Tea"}).wait().text == own
        faults.say("minimax", "Never said.")
        faults.clear()
        assert client.runs.create("llm.generate", {"objective": "Tea"}).wait().text == own


@pytest.mark.parametrize("how", ["truncate", "garbage", "drip", "hang", "drop"])
def test_every_spoilt_answer_ends_as_one_of_our_codes(tmp_path: Path, how: str) -> None:
    """Given a vendor whose answers are spoilt, then a pinned run fails clearly and in time."""
    from toolkit.settings import Settings, Timeouts, VendorSettings

    vendors = {"minimax": VendorSettings(timeouts=Timeouts(total_s=0.2))}
    settings = Settings(data_dir=tmp_path, vendors=vendors, retries=1, retry_base_s=0.01)
    faults = Faults()
    faults.mangle("minimax", how, drip_s=60.0)  # type: ignore[arg-type]
    with Client.local(settings=settings, faults=faults) as client:
        run = client.runs.create("llm.generate", {"objective": "Tea"}, provider="minimax")
        done = run.wait(check=False, timeout=PATIENCE_S)
    codes = {"truncate": "BAD_RESPONSE", "garbage": "BAD_RESPONSE", "drop": "UNAVAILABLE"}
    assert (done.status, done.error.code) == ("failed", f"PROVIDER_{codes.get(how, 'TIMEOUT')}")
