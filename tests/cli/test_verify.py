"""`toolkit verify`: one cheapest call of each kind, and what is expected of its answer."""

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
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A model server of one's own, connected, and its key in a variable."""
    server = ModelServer()
    monkeypatch.setenv("OPENAI_API_KEY", PLANTED)
    text = OWN_SETTINGS.format(url=server.url)
    (tmp_path / "toolkit.toml").write_text(text, encoding="utf-8")
    CliRunner().invoke(app, ["connections", "connect", "openai"], catch_exceptions=False)
    yield server
    server.close()


def test_nothing_is_asked_without_live(own: ModelServer) -> None:
    """Given no `--live`, then it says what would be asked and what that may cost, and asks not."""
    done = invoke()
    assert done.exit_code == 0
    assert "smollm2" in done.stdout
    assert "No vendor was called" in done.stdout
    assert own.asked == []


def test_the_sandbox_answers_as_expected() -> None:
    """Given the sandbox, then every vendor and kind that fits the budget is asked and is sound."""
    done = invoke("--sandbox", "--live", "--max-cost", "0.2", "--json")
    report: dict[str, Any] = json.loads(done.stdout)
    results = {(c["provider"], c["kind"]): c["result"] for c in report["checks"]}
    asked = {what for what, result in results.items() if result == "ok"}
    texts = {(vendor, "text") for vendor in ("openai", "anthropic", "google", "minimax", "aws")}
    texts |= {("runpod", "text"), ("runpod", "image")}
    texts |= {(vendor.id, "text") for vendor in load_vendors().values() if vendor.wire}
    assert texts | {("minimax", "speech"), ("elevenlabs", "speech")} == asked
    assert (done.exit_code, report["sound"]) == (0, True)
    paid = [c["paid_usd"] for c in report["checks"] if c["result"] == "ok"]
    assert report["paid_usd"] == pytest.approx(sum(paid))
    assert all(c["paid_usd"] <= c["bound_usd"] for c in report["checks"] if c["result"] == "ok")


def test_a_voice_is_cloned_where_a_file_is_named(tmp_path: Path) -> None:
    """Given `--clone` and a recording, then both voice vendors are asked, and it is all kept."""
    with wave.open(str(tmp_path / "me.wav"), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(b"\x00\x10" * 8000 * 12)
    named = ("--sandbox", "--clone", "me.wav", "--max-cost", "0.2", "--json")
    planned = {c["provider"]: c for c in json.loads(invoke(*named).stdout)["checks"] if clones(c)}
    assert {c["result"] for c in planned.values()} == {"planned"}
    assert all("--max-cost does not include it" in c["notes"][0] for c in planned.values())
    done = invoke(*named, "--live", "--cassette", "kept.yaml")
    report = json.loads(done.stdout)
    asked = {c["provider"]: c for c in report["checks"] if clones(c)}
    assert {name: c["result"] for name, c in asked.items()} == {"minimax": "ok", "elevenlabs": "ok"}
    assert all("--max-cost does not include it" in " ".join(c["notes"]) for c in asked.values())
    assert report["paid_usd"] <= 0.2
    kept = {exchange.key.url for exchange in read_exchanges(tmp_path / "kept.yaml")}
    for path in ("/v1/voice_clone", "/v1/voices/add"):
        assert any(url.endswith(path) for url in kept), kept
    skipped = json.loads(invoke("--sandbox", "--json").stdout)["checks"]
    assert all("--clone FILE" in c["notes"][0] for c in skipped if clones(c))


def test_a_recording_that_is_not_there_is_told(tmp_path: Path) -> None:
    """Given `--clone` and no such file, then one line says so before anything is asked."""
    done = CliRunner().invoke(app, ["verify", "--sandbox", "--live", "--clone", "none.wav"])
    assert done.exit_code == 2
    assert "none.wav" in done.output
    assert "Traceback" not in done.output


def clones(check: dict[str, Any]) -> bool:
    """Tell whether a check is of a clone."""
    return bool(check["kind"] == "clone")


def test_no_call_is_made_that_could_pass_the_budget() -> None:
    """Given less than any call may come to, then nothing is asked, and each line says why."""
    done = invoke("--sandbox", "--live", "--max-cost", "0.000001", "--json")
    report = json.loads(done.stdout)
    assert done.exit_code == 1
    assert report["paid_usd"] == 0
    assert {check["result"] for check in report["checks"]} == {"skipped"}
    assert any("raise --max-cost" in " ".join(check["notes"]) for check in report["checks"])


def test_another_server_is_compared_and_its_answers_kept(own: ModelServer, tmp_path: Path) -> None:
    """Given a foreign server, then what it leaves out is told, and its cassette has no secret."""
    done = invoke("--live", "--cassette", "kept.yaml", "--json")
    check = json.loads(done.stdout)["checks"][0]
    assert (check["provider"], check["kind"], check["result"]) == ("openai", "text", "ok")
    assert len(own.asked) == 1
    assert check["usage"] == {
        "input_tokens": FACTS["exchanges"]["text"]["body"]["usage"]["prompt_tokens"],
        "output_tokens": FACTS["exchanges"]["text"]["body"]["usage"]["completion_tokens"],
    }
    kept = (tmp_path / "kept.yaml").read_text(encoding="utf-8")
    assert "chat.completion" in kept
    assert PLANTED not in kept + done.output
    assert len(read_exchanges(tmp_path / "kept.yaml")) == 1


def test_nothing_connected_says_what_to_do_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a key in a variable and no connection, then the next command is told."""
    monkeypatch.setenv("OPENAI_API_KEY", PLANTED)
    done = invoke("--live")
    assert done.exit_code == 1
    assert "toolkit connections discover --connect openai" in done.stdout


def exchange(body: object) -> list[RecordedExchange]:
    """One answer, as a cassette has it."""
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


def test_what_a_flow_reads_is_found_by_leaving_it_out() -> None:
    """Given an answer, then the members that change the reply are read, and no others."""
    read_here = {".".join(path) for path in read_members(_openai(), "text", exchange(USUAL))}
    assert {"choices.[].message.content", "usage.prompt_tokens", "model"} <= read_here
    assert not {"created", "choices.[].index"} & read_here


def test_what_differs_is_told_apart() -> None:
    """Given an answer with one member lost, changed, added or unknown, then each is named."""
    choice = USUAL["choices"][0]
    changes: dict[str, Any] = {
        "usage": {"prompt_tokens": "1"},
        "choices": [{**choice, "finish_reason": "tired"}],
        "weather": {"today": "fair"},
    }
    found = compare(_openai(), "text", exchange({**USUAL, **changes}), exchange(USUAL))
    assert found.missing == ["usage.completion_tokens"]
    assert found.changed == ["usage.prompt_tokens is a text, not a number"]
    assert found.unknown_endings == ["choices[].finish_reason = 'tired'"]
    assert found.added == ["weather"]
    assert compare(_openai(), "text", exchange(USUAL), exchange(USUAL)) == Comparison()


def _openai() -> Any:
    return load_vendors()["openai"]


def test_planning_is_measured(tmp_path: Path) -> None:
    """Given `--planning`, then a model plans so many objectives, and the report on it is saved."""
    done = invoke("--sandbox", "--live", "--planning", "4", "--max-cost", "1")
    assert done.exit_code == 0, done.output
    report = json.loads((tmp_path / "planning-report.json").read_text(encoding="utf-8"))
    assert [one["calls"] > 0 for one in report["results"]] == [True] * 4
    assert 0 < report["cost_usd"] <= 1
    assert report["cost_usd"] == pytest.approx(sum(one["cost_usd"] for one in report["results"]))
    exact = sum(one["result"] == "exact" for one in report["results"])
    assert f"{exact} of 4 plans exact" in done.stdout
    assert report["model"] in done.stdout


def test_planning_prints_json(tmp_path: Path) -> None:
    """Given `--json`, then the report is printed as it is saved; other work is refused."""
    done = invoke("--sandbox", "--live", "--planning", "1", "--max-cost", "1", "--json")
    saved = json.loads((tmp_path / "planning-report.json").read_text(encoding="utf-8"))
    assert json.loads(done.stdout) == saved
    refused = invoke("--planning", "1", "--cassette", "answers.yaml")
    assert (refused.exit_code, "keeps no cassette" in refused.output) == (2, True)


def test_planning_stops_at_its_budget(tmp_path: Path) -> None:
    """Given a budget below the bound of one call, then nothing is asked, and it says why."""
    done = invoke("--sandbox", "--live", "--planning", "4", "--max-cost", "0.000001")
    assert done.exit_code == 1
    report = json.loads((tmp_path / "planning-report.json").read_text(encoding="utf-8"))
    assert (len(report["results"]), report["cost_usd"]) == (1, 0)
    assert report["results"][0]["result"] == "not asked"
    assert "does not cover" in report["results"][0]["error"]


def test_planning_asks_nobody_without_live(own: ModelServer) -> None:
    """Given no `--live`, then the objectives are shown, and the same seed shows the same."""
    done = invoke("--planning", "3")
    assert len(done.stdout.splitlines()) == 4
    assert invoke("--planning", "3").stdout == done.stdout
    drawn = json.loads(invoke("--planning", "3", "--json").stdout)
    assert [f"· {objective}" for objective in drawn] == done.stdout.splitlines()[:3]
    assert own.asked == []
