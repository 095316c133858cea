"""Cassettes: recorded once, then replayed without a network, a key or a bill."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cassettes.conftest import cut_off, read_exchanges
from tests.support.recordings import make_silent_wav
from toolkit import Client, Run, ServiceError, WorkError
from toolkit.sandbox import SANDBOX_KEYS, Fault, Faults
from toolkit.settings import Settings

LLMS = ["openai", "anthropic", "google", "minimax", "aws"]
TEXT = {"type": "string"}
SCHEMA = {"type": "object", "properties": {"title": TEXT}, "required": ["title"]}
SPEECH = {"text": "Tea is served."}
PICTURE = {"prompt": "a cup of tea", "width": 256, "height": 256}
RUNS: list[tuple[str, str | None, dict[str, object]]] = [
    *(("llm.generate", vendor, {"objective": "Tea"}) for vendor in LLMS),
    *(("llm.generate", vendor, {"objective": "Tea", "output_schema": SCHEMA}) for vendor in LLMS),
    *(("speech.generate", vendor, SPEECH) for vendor in ("minimax", "elevenlabs")),
    *(("voice.clone", vendor, {"name": "Ada"}) for vendor in ("minimax", "elevenlabs")),
    ("image.generate", "runpod", PICTURE),
    ("research.gather", None, {"topic": "Tides"}),
]


def open_tape(tape: Path, name: str, mode: Any = "replay", **options: Any) -> Client:
    """A client in the sandbox, with a data directory of its own next to the cassette."""
    settings = Settings(data_dir=tape.parent / name, sandbox=True, retry_base_s=0.01)
    return Client.local(settings=settings, cassette=tape, mode=mode, **options)


def run_capability(
    client: Client, capability: str, vendor: str | None, values: dict[str, object]
) -> Any:
    """Run a capability, and return its results without the ids, which are new in each process."""
    if capability == "voice.clone":
        values = {**values, "reference_audio": client.artifacts.upload(make_silent_wav(12)).id}
    run = client.runs.create(capability, values, provider=vendor).wait(progress=False)
    output = {name: value for name, value in run.output.items() if name != "artifact_id"}
    artifact = client.artifacts.get(run.artifact_id).record
    # A JSON artifact may hold its own id.
    has_id = "artifact_id" in run.output and artifact.media_type == "application/json"
    digest = artifact.size_bytes if has_id else artifact.sha256
    return output, digest, run.cost_usd, run.record.cost_source, run.record.usage


def run_all(client: Client) -> object:
    """Run every operation of every vendor."""
    return [run_capability(client, *arguments) for arguments in RUNS]


def use_cloud(client: Client) -> object:
    """Make an endpoint and a pod, whose names hold our new ids, and delete them."""
    endpoint = client.endpoints.create("mine", gpu_ids="ADA_24", image="acme/worker:1")
    pod = client.compute.create("box", "NVIDIA GeForce RTX 4090")
    client.compute.delete(pod.id)
    deleted = client.endpoints.delete(endpoint.id)
    return [endpoint.record.status, pod.record.status, deleted.record.status]


def plan(client: Client) -> object:
    """Have a language model plan."""
    plan = client.plans.create("A social card about tea", planner="llm").record
    assert plan.planner == "llm"
    return plan.nodes, plan.deliverables, plan.cost_incurred_usd


def replay(tape: Path, use: Callable[[Client], Any], **options: Any) -> None:
    """Use a client that records and a client that replays, and check that the results agree."""
    with open_tape(tape, "a", "record", **options) as client:
        first = use(client)
    with cut_off(), open_tape(tape, "b") as client:
        assert use(client) == first


@pytest.mark.parametrize("use", [run_all, use_cloud, plan])
def test_replays_a_recording_without_a_key(tape: Path, use: Callable[[Client], Any]) -> None:
    """Given a recording, when it is replayed, then all results are the same, and it has no key."""
    replay(tape, use)
    text = tape.read_text(encoding="utf-8")
    assert not [key for key in SANDBOX_KEYS.values() if key in text]


REPLAY = """
import json, socket, sys
from tests.cassettes.test_cassettes import open_tape, run_task
socket.socket.connect = socket.getaddrinfo = None
from pathlib import Path
with open_tape(Path(sys.argv[1]), "b") as client:
    print(json.dumps(run_task(client)))
"""


def run_task(client: Client) -> list[Any]:
    """Carry out a task, and return its status, digests and cost."""
    objective = "A social card on tidal power, with a narration"
    task = client.tasks.create(objective).wait(progress=False).record
    digests = {n: client.artifacts.get(id).record.sha256 for n, id in task.artifact_ids.items()}
    return [task.status, digests, task.cost_usd]


@pytest.mark.usefixtures("fork_programs")
def test_replays_a_task_in_another_process(tape: Path) -> None:
    """Given a recorded task, then a replay in another process has the same results."""
    with open_tape(tape, "a", "record") as client:
        first = run_task(client)
    command = [sys.executable, "-c", REPLAY, str(tape)]
    root = Path(__file__).parents[2]
    second = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=root)
    assert second.returncode == 0, second.stderr
    assert json.loads(second.stdout.splitlines()[-1]) == first
    assert first[0] == "completed"
    assert len(first[1]) >= 2


def test_fails_at_once_on_an_unknown_request(tape: Path) -> None:
    """Given a request that was not recorded, then the job fails at once with a hint."""
    with open_tape(tape, "a", "record") as client:
        run_capability(client, "llm.generate", None, {"objective": "Tea"})
    with open_tape(tape, "b") as client:
        run = client.runs.create("llm.generate", {"objective": "Coffee"})
        with pytest.raises(WorkError) as caught:
            run.wait(progress=False)
        job = run.refresh().record
    assert caught.value.code.name == "REPLAY_MISS"
    message = str(caught.value)
    assert re.search(r"POST sandbox\.invalid/\w+/v1/chat/completions is not in the", message)
    assert "`run.yaml`" in message
    assert 'mode="auto"' in message
    assert str(tape.parent) not in message
    assert len(job.attempts) == 1  # not retried, and not sent to another vendor


def test_research_does_not_hide_a_miss(tape: Path) -> None:
    """Given research recorded without its synthesis, then a replay with a synthesis fails."""
    facts = {"topic": "Tides", "synthesize": False}
    with open_tape(tape, "a", "record") as client:
        run_capability(client, "research.gather", None, facts)
    with open_tape(tape, "b") as client, pytest.raises(WorkError, match="REPLAY_MISS"):
        run_capability(client, "research.gather", None, {"topic": "Tides"})


RATE_LIMITED = {"base_resp": {"status_code": 1002, "status_msg": "rate limit"}}
REFUSED = {"error": {"param": "response_format", "code": "unsupported_parameter", "message": "no"}}
JSON = {"objective": "Tea", "output_schema": SCHEMA}
FAILED = {"id": "x", "status": "FAILED", "error": "out of memory"}


@pytest.mark.parametrize(
    ("fault", "values"),
    [
        (Fault("openai", status=429, times=1, headers={"Retry-After": "0"}), {}),
        (Fault("openai", mangle="drop", times=1), {}),
        (Fault("openai", mangle="garbage", times=1), {}),
        (Fault("minimax", status=200, body=RATE_LIMITED, times=1), {}),
        (Fault("openai", status=400, body=REFUSED, times=1), JSON),
    ],
)
def test_records_only_a_success(tape: Path, fault: Fault, values: dict[str, object]) -> None:
    """Given a failure before the success, then only the success is recorded and replayed."""
    faults = Faults()
    faults.add(fault)
    arguments = ("llm.generate", fault.vendor, {"objective": "Tea", **values})
    with open_tape(tape, "a", "record", faults=faults) as client:
        first = run_capability(client, *arguments)
    assert len(faults.calls) > 1
    assert len(read_exchanges(tape)) == 1
    with cut_off(), open_tape(tape, "b") as client:
        assert run_capability(client, *arguments) == first
        assert len(client.runs.list()[0].record.attempts) == 1


def test_a_failed_recording_leaves_no_cassette(tape: Path) -> None:
    """Given a recording of failures only, then there is no cassette, and a replay says so."""
    faults = Faults()
    faults.fail("openai", status=400)
    with open_tape(tape, "a", "record", faults=faults) as client, pytest.raises(WorkError):
        run_capability(client, "llm.generate", "openai", {"objective": "Tea"})
    assert not tape.exists()
    with pytest.raises(ServiceError, match=r'no cassette `run.yaml`: make it with mode="record"'):
        open_tape(tape, "b")


def test_removes_a_failed_job_from_the_cassette(tape: Path) -> None:
    """Given a queued job that fails and a later success, then the replay has the success."""
    faults = Faults()
    faults.add(Fault("runpod-jobs", "/status/", body={**FAILED, "id": None}, status=200, times=1))
    arguments = ("image.generate", "runpod", PICTURE)
    with open_tape(tape, "a", "record", faults=faults) as client:
        with pytest.raises(WorkError):
            run_capability(client, *arguments)
        assert not read_exchanges(tape)
        first = run_capability(client, *arguments)
    with cut_off(), open_tape(tape, "b") as client:
        assert run_capability(client, *arguments) == first


def test_a_poll_that_never_ends_is_a_miss(tape: Path) -> None:
    """Given a recording that stops while a job is under way, then a replay does not wait for it."""
    with open_tape(tape, "a", "record") as client:
        run_capability(client, "image.generate", "runpod", PICTURE)
    cassette = yaml.safe_load(tape.read_text(encoding="utf-8"))
    while "/status/" not in (last := cassette["exchanges"].pop())["request"]["url"]:
        pass  # the download of the picture
    body = {"id": last["request"]["url"].rpartition("/")[2], "status": "IN_PROGRESS"}
    last["response"]["body"] = json.dumps(body)
    cassette["exchanges"].append(last)
    tape.write_text(yaml.safe_dump(cassette), encoding="utf-8")
    with open_tape(tape, "b") as client, pytest.raises(WorkError, match="REPLAY_MISS"):
        run_capability(client, "image.generate", "runpod", PICTURE)


def test_auto_replays_known_requests_and_records_new_ones(tape: Path) -> None:
    """Given `auto`, then only unknown requests are sent, and the next run knows them too."""
    runs = [("llm.generate", "openai", {"objective": f"Line {i}"}) for i in range(3)]
    runs.append(("image.generate", "runpod", PICTURE))  # polls until the image is ready
    results, calls = [], []
    for count in (2, 4, 4):
        faults = Faults()
        with open_tape(tape, str(len(results)), "auto", faults=faults) as client:
            results.append([run_capability(client, *arguments) for arguments in runs[:count]])
        calls.append(len(faults.calls))
    assert results[1] == results[2]
    assert results[1][:2] == results[0]
    assert calls[0] == 2
    assert calls[1] >= 3
    assert calls[2] == 0


def test_the_example_of_the_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given the Python code of the page, when it runs, then its assertions hold."""
    page = Path(__file__).parents[2] / "docs" / "cassettes.md"
    (block,) = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "cassettes.md", "exec"), {})
    assert (tmp_path / "tea.yaml").stat().st_mode & 0o777 == 0o600


def test_replays_a_redirect(tape: Path) -> None:
    """Given an encyclopedia that redirects, then the replay redirects too."""
    faults = Faults()
    moved = {"location": "?redirect=true"}
    faults.add(Fault("encyclopedia", "page/summary", status=302, headers=moved, times=1))
    arguments = ("research.gather", None, {"topic": "Tides", "synthesize": False})
    replay(tape, lambda client: run_capability(client, *arguments), faults=faults)
    assert 302 in [exchange["response"]["status"] for exchange in read_exchanges(tape)]


def test_recorded_latencies_do_not_change_routing(tape: Path) -> None:
    """Given a vendor that is slow during the recording, then routing stays as in a replay."""
    faults = Faults()
    with open_tape(tape, "a", "record", faults=faults) as client:
        before = client.route("llm.generate", {"objective": "Tea"}, optimize_for="latency")
        faults.latency(before.provider, 100)
        run_capability(client, "llm.generate", before.provider, {"objective": "Tea"})
        after = client.route("llm.generate", {"objective": "Tea"}, optimize_for="latency")
    assert after.record == before.record


HAND_MADE = """
version: 1
made_by: hand, for a test
answers:
- {when: a rude courier, text: '{"topic": "support"}'}
- {when: tides, vendor: anthropic, text: Tides are a patient friend.}
"""


def test_sandbox_answers_by_a_handmade_cassette(tape: Path) -> None:
    """Given handmade answers for words of a prompt, then matching requests get them, every time.

    Other requests and vendors get answers of the simulated model; prices are the vendor's.
    """
    tape.write_text(HAND_MADE, encoding="utf-8")
    with Client.local(tape.parent / "a", sandbox=True, cassette=tape) as client:

        def ask(objective: str, provider: str) -> Run:
            return client.runs.create(
                "llm.generate", {"objective": objective}, provider=provider, cache=False
            ).wait(progress=False)

        for provider in ("openai", "google", "anthropic"):
            assert ask("Judge a rude courier.", provider).text == '{"topic": "support"}'
        run = ask("Two lines on tides", "anthropic")
        assert run.text == "Tides are a patient friend."
        assert run.cost_usd > 0
        assert ask("Two lines on tides", "openai").text != run.text
        assert ask("Two lines on tea", "anthropic").text != run.text


def test_handmade_cassettes_need_the_sandbox(tape: Path) -> None:
    """Given a handmade cassette, then no real vendor plays it, and nothing is recorded to it."""
    tape.write_text(HAND_MADE, encoding="utf-8")
    with pytest.raises(ServiceError, match="open it with sandbox=True"):
        Client.local(tape.parent / "a", cassette=tape)
    with pytest.raises(ServiceError, match="cannot be recorded to"):
        Client.local(tape.parent / "a", sandbox=True, cassette=tape, mode="auto")
    tape.write_text(HAND_MADE.replace("anthropic", "antropic"), encoding="utf-8")
    with pytest.raises(ServiceError, match="Did you mean 'anthropic'"):
        Client.local(tape.parent / "a", sandbox=True, cassette=tape)
