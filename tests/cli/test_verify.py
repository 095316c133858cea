"""`toolkit verify`: one cheapest call of each kind, and the expected form of its answer."""

import json
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from tests.support.model_server import FACTS, ModelServer
from toolkit.cassettes.matching import RequestKey
from toolkit.cassettes.yaml_file import RecordedExchange, read_exchanges
from toolkit.cli import app
from toolkit.plugins import EmbedRequest
from toolkit.vendors import load_vendors
from toolkit.verify.comparison import Comparison, compare, read_members

PLANTED = "planted-secret-5d41402abc4b2a76"
OWN_SETTINGS = """
[vendors.openai]
base_urls = {{ api = "{url}" }}
models = {{ text = "smollm2" }}
prices = {{ smollm2 = {{ input_tokens = 0, output_tokens = 0 }} }}
"""


def invoke(*line: str) -> Result:
    """Run a command, and return its result."""
    return CliRunner().invoke(app, ["verify", *line], catch_exceptions=False)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def model_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A connected model server on this machine, whose key is in a variable."""
    server = ModelServer()
    monkeypatch.setenv("OPENAI_API_KEY", PLANTED)
    text = OWN_SETTINGS.format(url=server.url)
    (tmp_path / "toolkit.toml").write_text(text, encoding="utf-8")
    CliRunner().invoke(app, ["connections", "connect", "openai"], catch_exceptions=False)
    yield server
    server.close()


def test_calls_no_vendor_without_live(model_server: ModelServer) -> None:
    """Given no `--live`, then the calls and their cost are printed, and no vendor is called."""
    result = invoke()
    assert result.exit_code == 0
    assert "smollm2" in result.stdout
    assert "No vendor was called" in result.stdout
    assert model_server.asked == []


def test_sandbox_passes_every_check() -> None:
    """Given the sandbox, then each vendor and kind within the budget is called and passes."""
    result = invoke("--sandbox", "--live", "--max-cost", "0.4", "--json")
    report: dict[str, Any] = json.loads(result.stdout)
    results = {(c["provider"], c["kind"]): c["result"] for c in report["checks"]}
    passed = {call for call, outcome in results.items() if outcome == "ok"}
    texts = {
        (vendor, "text") for vendor in ("openai", "anthropic", "google", "minimax", "aws", "cohere")
    }
    texts |= {("runpod", "text"), ("runpod", "image")}
    others = [v for v in load_vendors().values() if (v.wire or v.sign_in) and not v.is_local]
    texts |= {(vendor.id, "text") for vendor in others}
    embedders = "openai", "google", "minimax", "aws", "cohere", "voyage"
    vectors = {(vendor, "embedding") for vendor in embedders}
    vectors |= {(vendor.id, "embedding") for vendor in others if EmbedRequest in vendor.operations}
    ranks = {(vendor, "rerank") for vendor in ("aws", "cohere", "voyage")}
    speech = {(vendor, "speech") for vendor in ("minimax", "elevenlabs")}
    assert texts | vectors | ranks | speech == passed
    assert (result.exit_code, report["sound"]) == (0, True)
    paid = [c["paid_usd"] for c in report["checks"] if c["result"] == "ok"]
    assert report["paid_usd"] == pytest.approx(sum(paid))
    assert all(c["paid_usd"] <= c["bound_usd"] for c in report["checks"] if c["result"] == "ok")


def test_clones_a_voice_from_a_file(tmp_path: Path) -> None:
    """Given `--clone` and a recording, then both voice vendors are called, and recorded."""
    with wave.open(str(tmp_path / "me.wav"), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(b"\x00\x10" * 8000 * 12)
    line = ("--sandbox", "--clone", "me.wav", "--max-cost", "0.2", "--json")
    planned = {c["provider"]: c for c in json.loads(invoke(*line).stdout)["checks"] if is_clone(c)}
    assert {c["result"] for c in planned.values()} == {"planned"}
    assert all("--max-cost does not include it" in c["notes"][0] for c in planned.values())
    result = invoke(*line, "--live", "--cassette", "answers.yaml")
    report = json.loads(result.stdout)
    clones = {c["provider"]: c for c in report["checks"] if is_clone(c)}
    assert {name: c["result"] for name, c in clones.items()} == {
        "minimax": "ok",
        "elevenlabs": "ok",
    }
    assert all("--max-cost does not include it" in " ".join(c["notes"]) for c in clones.values())
    assert report["paid_usd"] <= 0.2
    urls = {exchange.key.url for exchange in read_exchanges(tmp_path / "answers.yaml")}
    for path in ("/v1/voice_clone", "/v1/voices/add"):
        assert any(url.endswith(path) for url in urls), urls
    skipped = json.loads(invoke("--sandbox", "--json").stdout)["checks"]
    assert all("--clone FILE" in c["notes"][0] for c in skipped if is_clone(c))


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (["--live", "--clone", "none.wav"], "none.wav"),
        (["--planning", "1", "--cassette", "answers.yaml"], "keeps no cassette"),
    ],
)
def test_rejects_options_that_cannot_be_used(line: list[str], text: str) -> None:
    """Given a missing recording, or a cassette of plans, then one line rejects the command."""
    result = invoke("--sandbox", *line)
    assert result.exit_code == 2
    assert text in result.output
    assert "Traceback" not in result.output


def is_clone(check: dict[str, Any]) -> bool:
    """Return whether a check is of a voice clone."""
    return bool(check["kind"] == "clone")


def test_makes_no_call_over_the_budget() -> None:
    """Given less than the bound of any call, then no vendor is called, and each line says why."""
    result = invoke("--sandbox", "--live", "--max-cost", "0.00000001", "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == 1
    assert report["paid_usd"] == 0
    assert {check["result"] for check in report["checks"]} == {"skipped"}
    assert any("raise --max-cost" in " ".join(check["notes"]) for check in report["checks"])


def test_compares_and_records_another_server(model_server: ModelServer, tmp_path: Path) -> None:
    """Given another server, then its answer is compared, and its cassette holds no secret."""
    result = invoke("--live", "--cassette", "answers.yaml", "--json")
    check = json.loads(result.stdout)["checks"][0]
    assert (check["provider"], check["kind"], check["result"]) == ("openai", "text", "ok")
    assert len([body for body in model_server.asked if "messages" in body]) == 1
    assert check["usage"] == {
        "input_tokens": FACTS["exchanges"]["text"]["body"]["usage"]["prompt_tokens"],
        "output_tokens": FACTS["exchanges"]["text"]["body"]["usage"]["completion_tokens"],
    }
    cassette = (tmp_path / "answers.yaml").read_text(encoding="utf-8")
    assert "chat.completion" in cassette
    assert PLANTED not in cassette + result.output
    assert len(read_exchanges(tmp_path / "answers.yaml")) == len(model_server.asked)


def test_names_the_next_command_without_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a key in a variable and no connection, then the output names the next command."""
    monkeypatch.setenv("OPENAI_API_KEY", PLANTED)
    result = invoke("--live")
    assert result.exit_code == 1
    assert "toolkit connections discover --connect openai" in result.stdout


def exchange(body: object) -> list[RecordedExchange]:
    """Return an answer as a cassette records it."""
    key = RequestKey("POST", "https://vendor.example/v1", "")
    headers = {"content-type": "application/json"}
    return [RecordedExchange(key, 200, headers, httpx.Response(200, json=body).content)]


USUAL: dict[str, Any] = {
    "id": "chatcmpl-1",
    "model": "m",
    "created": 1,
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "ok"}}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 2},
}


def test_finds_the_members_that_a_flow_reads() -> None:
    """Given an answer, then only members that change the reply count as read."""
    members = {".".join(path) for path in read_members(_openai(), "text", exchange(USUAL))}
    assert {"choices.[].message.content", "usage.prompt_tokens", "model"} <= members
    assert not {"created", "choices.[].index"} & members


def test_distinguishes_differences() -> None:
    """Given an answer with a lost, changed, added or unknown member, then each is named."""
    choice = USUAL["choices"][0]
    changes: dict[str, Any] = {
        "usage": {"prompt_tokens": "1"},
        "choices": [{**choice, "finish_reason": "tired"}],
        "weather": {"today": "fair"},
    }
    comparison = compare(_openai(), "text", exchange({**USUAL, **changes}), exchange(USUAL))
    assert comparison.missing == ["usage.completion_tokens"]
    assert comparison.changed == ["usage.prompt_tokens is a text, not a number"]
    assert comparison.unknown_endings == ["choices[].finish_reason = 'tired'"]
    assert comparison.added == ["weather"]
    assert compare(_openai(), "text", exchange(USUAL), exchange(USUAL)) == Comparison()


def _openai() -> Any:
    return load_vendors()["openai"]


def test_measures_planning(tmp_path: Path) -> None:
    """Given `--planning`, then a model plans so many objectives, and the report is saved."""
    result = invoke("--sandbox", "--live", "--planning", "4", "--max-cost", "1")
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / "planning-report.json").read_text(encoding="utf-8"))
    assert [plan["calls"] > 0 for plan in report["results"]] == [True] * 4
    assert 0 < report["cost_usd"] <= 1
    assert report["cost_usd"] == pytest.approx(sum(plan["cost_usd"] for plan in report["results"]))
    exact = sum(plan["result"] == "exact" for plan in report["results"])
    assert f"{exact} of 4 plans exact" in result.stdout
    assert report["model"] in result.stdout


def test_planning_stops_at_its_budget(tmp_path: Path) -> None:
    """Given a budget below the bound of one call, then nothing is sent, and the report says why."""
    result = invoke(*["--sandbox", "--live", "--planning", "4", "--max-cost", "0.000001", "--json"])
    assert result.exit_code == 1
    report = json.loads((tmp_path / "planning-report.json").read_text(encoding="utf-8"))
    assert json.loads(result.stdout) == report
    assert (len(report["results"]), report["cost_usd"]) == (1, 0)
    assert report["results"][0]["result"] == "not asked"
    assert "does not cover" in report["results"][0]["error"]


def test_planning_calls_no_vendor_without_live(model_server: ModelServer) -> None:
    """Given no `--live`, then the objectives are printed, and the same seed prints the same."""
    result = invoke("--planning", "3")
    assert len(result.stdout.splitlines()) == 4
    assert invoke("--planning", "3").stdout == result.stdout
    objectives = json.loads(invoke("--planning", "3", "--json").stdout)
    assert [f"· {objective}" for objective in objectives] == result.stdout.splitlines()[:3]
    assert model_server.asked == []
