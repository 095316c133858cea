"""Cassettes: recorded once, replayed without a network, keys or bills."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.recordings import make_silent_wav
from toolkit import AsyncClient, Client, Run, ServiceError, WorkError, Workflow
from toolkit.sandbox import SANDBOX_KEYS, Fault, Faults
from toolkit.settings import Settings

LLMS = ["openai", "anthropic", "google", "minimax", "aws"]
TEXT = {"type": "string"}
SCHEMA = {"type": "object", "properties": {"title": TEXT}, "required": ["title"]}
SPOKEN = {"text": "Tea is served."}
PICTURE = {"prompt": "a cup of tea", "width": 256, "height": 256}
RUNS: list[tuple[str, str | None, dict[str, object]]] = [
    *(("llm.generate", vendor, {"objective": "Tea"}) for vendor in LLMS),
    *(("llm.generate", vendor, {"objective": "Tea", "output_schema": SCHEMA}) for vendor in LLMS),
    *(("speech.generate", vendor, SPOKEN) for vendor in ("minimax", "elevenlabs")),
    *(("voice.clone", vendor, {"name": "Ada"}) for vendor in ("minimax", "elevenlabs")),
    ("image.generate", "runpod", PICTURE),
    ("research.gather", None, {"topic": "Tides"}),
]


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """Where a cassette goes."""
    return tmp_path / "run.yaml"


def open_tape(tape: Path, name: str, mode: Any = "replay", **more: Any) -> Client:
    """A client in the sandbox, with a data directory of its own beside the cassette."""
    settings = Settings(data_dir=tape.parent / name, sandbox=True, retry_base_s=0.01)
    return Client.local(settings=settings, cassette=tape, mode=mode, **more)


@contextmanager
def cut_off(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No network and no sandbox: to make either is an error."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a replay reached out")

    with monkeypatch.context() as cut:
        cut.setattr("toolkit.engine.transport.checking_transport.CheckingTransport", refuse)
        cut.setattr("toolkit.sandbox.create_app", refuse)
        cut.setattr("socket.socket.connect", refuse)
        cut.setattr("socket.getaddrinfo", refuse)
        yield


def run_capability(
    client: Client, capability: str, vendor: str | None, given: dict[str, object]
) -> Any:
    """Run a capability; what came of it, without what each process makes up anew."""
    if capability == "voice.clone":
        given = {**given, "reference_audio": client.artifacts.upload(make_silent_wav(12)).id}
    run = client.runs.create(capability, given, provider=vendor).wait(progress=False)
    output = {name: value for name, value in run.output.items() if name != "artifact_id"}
    kept = client.artifacts.get(run.artifact_id).record
    usage = run.record.usage
    # A JSON artifact may hold its own id, which is new in each process.
    digest = kept.sha256 if "artifact_id" not in run.output else kept.size_bytes
    if kept.media_type != "application/json":
        digest = kept.sha256
    return output, digest, run.cost_usd, run.record.cost_source, usage


def exchanges(tape: Path) -> list[Any]:
    """Read the exchanges that a cassette holds."""
    held = yaml.safe_load(tape.read_text(encoding="utf-8"))
    assert held["version"] == 1
    return list(held["exchanges"])


def run_all(client: Client) -> object:
    """Run every operation of every vendor."""
    return [run_capability(client, *asked) for asked in RUNS]


def use_cloud(client: Client) -> object:
    """Make an endpoint and a pod, whose names hold our new ids, and delete them."""
    endpoint = client.endpoints.create("mine", gpu_ids="ADA_24", image="acme/worker:1")
    pod = client.compute.create("box", "NVIDIA GeForce RTX 4090")
    client.compute.delete(pod.id)
    gone = client.endpoints.delete(endpoint.id)
    return [endpoint.record.status, pod.record.status, gone.record.status]


def plan(client: Client) -> object:
    """Have a language model plan."""
    made = client.plans.create("A social card about tea", planner="llm").record
    assert made.planner == "llm"
    return made.nodes, made.deliverables, made.cost_incurred_usd


def replay(
    tape: Path, monkeypatch: pytest.MonkeyPatch, use: Callable[[Client], Any], **more: Any
) -> None:
    """Use a client that records, and one that replays: the same comes of both."""
    with open_tape(tape, "a", "record", **more) as client:
        first = use(client)
    with cut_off(monkeypatch), open_tape(tape, "b") as client:
        assert use(client) == first


@pytest.mark.parametrize("use", [run_all, use_cloud, plan])
def test_what_is_recorded_replays(
    tape: Path, monkeypatch: pytest.MonkeyPatch, use: Callable[[Client], Any]
) -> None:
    """Given a recording, when it is replayed, then all of it is the same, and it has no key."""
    replay(tape, monkeypatch, use)
    text = tape.read_text(encoding="utf-8")
    assert not [key for key in SANDBOX_KEYS.values() if key in text]


TOPICS = ["tea", "coffee", "owls", "tides", "rain", "bridges", "copper", "moss"]


def cards() -> Workflow:
    """Facts, a picture and several texts at once, and a card of them."""
    wf = Workflow("cards")
    facts = wf.add("facts", "research.gather", topic="Tides")
    texts = [wf.add(topic, "llm.generate", objective=topic) for topic in TOPICS]
    picture = wf.add("picture", "image.generate", **PICTURE)
    wf.add("card", "composition.layout", title="Tides", depends_on=[facts, *texts, picture])
    return wf


async def digests(client: AsyncClient, done: Any) -> dict[str, tuple[str, float | None]]:
    """Read the digest of each node's artifact, and its cost."""
    found = {}
    for node in done.nodes:
        job = (await client.jobs.get(node.job_id)).record
        artifact = (await client.artifacts.get(node.artifact_id)).record
        found[node.id] = artifact.sha256, job.cost_usd
    return found


async def test_a_workflow_replays(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given parallel nodes, when they are replayed, then each has its own answer."""
    seen = []
    for mode in ("record", "replay"):
        with cut_off(monkeypatch) if mode == "replay" else monkeypatch.context():
            where = tape.parent / str(len(seen))
            async with AsyncClient.local(where, sandbox=True, cassette=tape, mode=mode) as client:
                submitted = await client.workflows.submit(cards())
                done = await submitted.wait(progress=False)
                seen.append((await digests(client, done), done.cost_usd))
    assert seen[0] == seen[1]
    assert len({digest for digest, _ in seen[0][0].values()}) == 11


OBJECTIVE = "A social card on tidal power, with a narration"
REPLAY = """
import json, socket, sys
from tests.cassettes.test_cassettes import open_tape, run_task
socket.socket.connect = socket.getaddrinfo = None
from pathlib import Path
with open_tape(Path(sys.argv[1]), "b") as client:
    print(json.dumps(run_task(client)))
"""


def run_task(client: Client) -> list[Any]:
    """Carry a task out; how it ended, what it made and what it cost."""
    task = client.tasks.create(OBJECTIVE).wait(progress=False)
    made = {n: client.artifacts.get(a).record.sha256 for n, a in task.record.artifact_ids.items()}
    return [task.status, made, task.record.cost_usd]


@pytest.mark.usefixtures("fork_programs")
def test_a_task_replays_in_another_process(tape: Path) -> None:
    """Given a task recorded in one process, then another makes the same for the same."""
    with open_tape(tape, "a", "record") as client:
        first = run_task(client)
    command = [sys.executable, "-c", REPLAY, str(tape)]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=root)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == first
    assert first[0] == "completed"
    assert len(first[1]) >= 2


def test_a_request_that_is_not_on_it_is_a_miss(tape: Path) -> None:
    """Given another request than the recorded one, then the job fails at once, and says why."""
    with open_tape(tape, "a", "record") as client:
        run_capability(client, "llm.generate", None, {"objective": "Tea"})
    with open_tape(tape, "b") as client:
        run = client.runs.create("llm.generate", {"objective": "Coffee"})
        with pytest.raises(WorkError) as missed:
            run.wait(progress=False)
        job = run.refresh().record
    assert missed.value.code.name == "REPLAY_MISS"
    said = str(missed.value)
    assert re.search(r"POST sandbox\.invalid/\w+/v1/chat/completions is not in the", said)
    assert "`run.yaml`" in said
    assert 'mode="auto"' in said
    assert str(tape.parent) not in said
    assert len(job.attempts) == 1  # neither again nor at another vendor


def test_a_miss_is_not_taken_for_a_missing_synthesis(tape: Path) -> None:
    """Given research recorded without its synthesis, then a replay does not make do."""
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
    ("fault", "given"),
    [
        (Fault("openai", status=500, times=2), {}),
        (Fault("openai", status=429, times=1, headers={"Retry-After": "0"}), {}),
        (Fault("openai", mangle="drop", times=1), {}),
        (Fault("openai", mangle="garbage", times=1), {}),
        (Fault("minimax", status=200, body=RATE_LIMITED, times=1), {}),
        (Fault("openai", status=400, body=REFUSED, times=1), JSON),
        (Fault("google", status=400, body={"error": {"message": "responseSchema"}}, times=1), JSON),
    ],
)
def test_only_what_succeeded_is_recorded(
    tape: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault, given: dict[str, object]
) -> None:
    """Given a failure before the success, then only this is recorded, and replays at once."""
    faults = Faults()
    faults.add(fault)
    asked = ("llm.generate", fault.vendor, {"objective": "Tea", **given})
    with open_tape(tape, "a", "record", faults=faults) as client:
        first = run_capability(client, *asked)
    assert len(faults.calls) > 1
    assert len(exchanges(tape)) == 1
    with cut_off(monkeypatch), open_tape(tape, "b") as client:
        assert run_capability(client, *asked) == first
        assert len(client.runs.list()[0].record.attempts) == 1


def test_what_failed_to_the_end_leaves_no_cassette(tape: Path) -> None:
    """Given nothing but failures, then there is nothing to replay, and it says so."""
    faults = Faults()
    faults.fail("openai", status=400)
    with open_tape(tape, "a", "record", faults=faults) as client, pytest.raises(WorkError):
        run_capability(client, "llm.generate", "openai", {"objective": "Tea"})
    assert not tape.exists()
    with pytest.raises(ServiceError, match=r'no cassette `run.yaml`: make it with mode="record"'):
        open_tape(tape, "b")


def test_a_job_that_failed_is_taken_out_again(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a queued job that fails and another that does not, then the second one is replayed."""
    faults = Faults()
    faults.add(Fault("runpod-jobs", "/status/", body={**FAILED, "id": None}, status=200, times=1))
    asked = ("image.generate", "runpod", PICTURE)
    with open_tape(tape, "a", "record", faults=faults) as client:
        with pytest.raises(WorkError):
            run_capability(client, *asked)
        assert not exchanges(tape)
        first = run_capability(client, *asked)
    with cut_off(monkeypatch), open_tape(tape, "b") as client:
        assert run_capability(client, *asked) == first


def test_a_poll_without_an_end_is_a_miss(tape: Path) -> None:
    """Given a recording that stops while a job is under way, then a replay does not wait for it."""
    with open_tape(tape, "a", "record") as client:
        run_capability(client, "image.generate", "runpod", PICTURE)
    held = yaml.safe_load(tape.read_text(encoding="utf-8"))
    while "/status/" not in (last := held["exchanges"].pop())["request"]["url"]:
        pass  # the picture that the last answer led to
    going = {"id": last["request"]["url"].rpartition("/")[2], "status": "IN_PROGRESS"}
    last["response"]["body"] = json.dumps(going)
    held["exchanges"].append(last)
    tape.write_text(yaml.safe_dump(held), encoding="utf-8")
    with open_tape(tape, "b") as client, pytest.raises(WorkError, match="REPLAY_MISS"):
        run_capability(client, "image.generate", "runpod", PICTURE)


def test_auto_replays_what_it_knows_and_records_the_rest(tape: Path) -> None:
    """Given `auto`, then only what is new is asked for, and the next time that is known, too."""
    asked = [("llm.generate", "openai", {"objective": f"Line {i}"}) for i in range(3)]
    asked.append(("image.generate", "runpod", PICTURE))  # asks again and again until it is done
    seen, calls = [], []
    for known in (2, 4, 4):
        faults = Faults()
        with open_tape(tape, str(len(seen)), "auto", faults=faults) as client:
            seen.append([run_capability(client, *each) for each in asked[:known]])
        calls.append(len(faults.calls))
    assert seen[1] == seen[2]
    assert seen[1][:2] == seen[0]
    assert calls[0] == 2
    assert calls[1] >= 3
    assert calls[2] == 0


def test_the_page_on_cassettes_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given the Python of the page, when it is run, then it holds."""
    page = Path(__file__).parents[2] / "docs" / "cassettes.md"
    (block,) = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "cassettes.md", "exec"), {})
    assert (tmp_path / "tea.yaml").stat().st_mode & 0o777 == 0o600


def test_a_redirect_replays(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given an encyclopedia that redirects, then the replay is redirected, too."""
    faults = Faults()
    moved = {"location": "?redirect=true"}
    faults.add(Fault("encyclopedia", "page/summary", status=302, headers=moved, times=1))
    asked = ("research.gather", None, {"topic": "Tides", "synthesize": False})
    replay(tape, monkeypatch, lambda client: run_capability(client, *asked), faults=faults)
    assert 302 in [each["response"]["status"] for each in exchanges(tape)]


def test_what_calls_took_changes_no_route(tape: Path) -> None:
    """Given a vendor that is slow while it is recorded, then it is chosen as in a replay."""
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


def test_answers_made_by_hand_are_given_in_the_sandbox(tape: Path) -> None:
    """Given answers for words of a prompt, then requests with these words get them, every time.

    Other requests, and other vendors, are answered by the simulated model; prices are the vendor's.
    """
    tape.write_text(HAND_MADE, encoding="utf-8")
    with Client.local(tape.parent / "a", sandbox=True, cassette=tape) as client:

        def ask(objective: str, provider: str) -> Run:
            return client.runs.create(
                "llm.generate", {"objective": objective}, provider=provider, cache=False
            ).wait(progress=False)

        for provider in ("openai", "google", "anthropic"):
            assert ask("What about a rude courier?", provider).text == '{"topic": "support"}'
        told = ask("Two lines on tides", "anthropic")
        assert told.text == "Tides are a patient friend."
        assert told.cost_usd > 0
        assert ask("Two lines on tides", "openai").text != told.text
        assert ask("Two lines on tea", "anthropic").text != told.text


def test_answers_made_by_hand_are_for_the_sandbox_alone(tape: Path) -> None:
    """Given a cassette made by hand, then no real vendor plays it, and nothing is recorded."""
    tape.write_text(HAND_MADE, encoding="utf-8")
    with pytest.raises(ServiceError, match="open it with sandbox=True"):
        Client.local(tape.parent / "a", cassette=tape)
    with pytest.raises(ServiceError, match="cannot be recorded to"):
        Client.local(tape.parent / "a", sandbox=True, cassette=tape, mode="auto")
    tape.write_text(HAND_MADE.replace("anthropic", "antropic"), encoding="utf-8")
    with pytest.raises(ServiceError, match="Did you mean 'anthropic'"):
        Client.local(tape.parent / "a", sandbox=True, cassette=tape)
