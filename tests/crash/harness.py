"""Kills servers and compares what they had promised with what is there afterwards.

The vendor cloud is a process of its own which survives. Its log tells which calls were made and
billed, whatever the server believes; the ledger remembers what the server had acknowledged and
shown. `violations` holds the two against what a restarted server says.
"""

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import httpx

from tests.crash import nursery
from tests.crash.test_kill import free_port, process
from toolkit.sandbox._state import SandboxState

Record = dict[str, Any]

LATENCY_MS = 40
FINAL = frozenset({"completed", "failed", "cancelled"})
# As the vendors' own hosts have them: what stands before the paths that an adapter adds.
BASE_URLS = {
    "MINIMAX__BASE_URLS__API": "/minimax",
    "OPENAI__BASE_URLS__API": "/openai/v1",
    "ANTHROPIC__BASE_URLS__API": "/anthropic",
    "GOOGLE__BASE_URLS__API": "/google",
    "ELEVENLABS__BASE_URLS__API": "/elevenlabs",
    "AWS__BASE_URLS__API": "/aws",
    "RUNPOD__BASE_URLS__API": "/runpod",
    "RUNPOD__BASE_URLS__JOBS": "/runpod-jobs",
}
VARIABLES = {
    "minimax": "MINIMAX_API_KEY",
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GEMINI_API_KEY",
    "elevenlabs": "ELEVENLABS_API_KEY",
}
WRITERS = ("minimax", "openai", "anthropic", "google")


def until(holds: Callable[[], bool], what: str, timeout_s: float = 30.0) -> None:
    """Poll until something holds."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"it did not come to pass in time: {what}"
        time.sleep(0.01)


class Cloud:
    """The vendor cloud, and what it tells of the calls that reached it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = httpx.Client(base_url=url, trust_env=False)

    def calls(self) -> list[Record]:
        """Every call so far, in the order of arrival."""
        found: list[Record] = self._client.get("/_sandbox/calls").json()["calls"]
        return found

    def quiet(self) -> list[Record]:
        """Every call, once all of them have been answered."""
        calls: list[Record] = []

        def answered() -> bool:
            calls[:] = self.calls()
            return all(call["status"] for call in calls)

        until(answered, "the cloud answers all calls")
        return calls

    def environment(self) -> dict[str, str]:
        """The settings of a server whose vendors are here."""
        urls = {f"TOOLKIT_VENDORS__{name}": self.url + path for name, path in BASE_URLS.items()}
        # Callers here look around without a pause.
        often = {"TOOLKIT_RATE_LIMIT_PER_S": "100000", "TOOLKIT_RATE_LIMIT_BURST": "100000"}
        return {**urls, **often, "TOOLKIT_ENCYCLOPEDIA_URL": f"{self.url}/encyclopedia"}

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()


@contextmanager
def opened_cloud() -> Iterator[Cloud]:
    """A vendor cloud in a process of its own."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = ("toolkit.sandbox", "--port", str(port), "--latency-ms", str(LATENCY_MS))
    with process(*command, env={}, ready=f"{url}/_sandbox/calls"):
        cloud = Cloud(url)
        try:
            yield cloud
        finally:
            cloud.close()


class Nursery:
    """Starts servers on one port, one at a time; see `nursery.py`."""

    def __init__(self, cloud: Cloud, log: Path) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", nursery.__name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._log = log
        self._cloud = cloud
        self.port = free_port()
        self._read()

    def _read(self) -> str:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        assert line, "the nursery has died"
        return line

    def _ask(self, **asked: object) -> Any:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(asked) + "\n")
        self._child.stdin.flush()
        return json.loads(self._read())

    def serve(self, data_dir: Path, **env: str) -> "Server":
        """Start a server on a data directory; it does not answer yet."""
        argv = ["serve", "--port", str(self.port), "--data-dir", str(data_dir), "--sandbox"]
        told = {**self._cloud.environment(), **env}
        pid = self._ask(argv=argv, env=told, log=str(self._log))
        return Server(self.port, pid, lambda: self._ask(poll=True), self._log)

    def close(self) -> None:
        """End it, and with it the server."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        self._child.wait()
        self._child.stdout.close()


class Server:
    """One server process."""

    def __init__(self, port: int, pid: int, poll: Callable[[], int | None], log: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.pid = pid
        self._poll = poll
        self._log = log

    def ended(self) -> int | None:
        """How it ended; none while it runs."""
        return self._poll()

    def ready(self) -> bool:
        """Wait until it answers, or has ended; whether it answers."""
        with httpx.Client(base_url=self.url, trust_env=False) as client:

            def settled() -> bool:
                with suppress(httpx.TransportError):
                    return client.get("/v1/health").status_code == 200
                return self.ended() is not None

            until(settled, "the server answers")
        return self.ended() is None

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send it a signal, if it is still there."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait(self) -> int:
        """Wait for its end; the exit code, or minus the signal.

        Raises:
            AssertionError: it stopped by a fault of its own.
        """
        until(lambda: self.ended() is not None, "the server ends")
        ended = self.ended()
        assert ended in (0, -signal.SIGKILL), f"it ended with {ended}: {self._log.read_text()}"
        return ended


@dataclass(frozen=True)
class Person:
    """An account: the headers of its key, and its connections by provider."""

    headers: Mapping[str, str]
    connections: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Kill:
    """When a server was killed, and how many calls the cloud had seen once that was over."""

    at: datetime
    calls: int


@dataclass
class Ledger:
    """What servers acknowledged and showed, and when they were killed.

    Attributes:
        people: the accounts that were acknowledged.
        acknowledged: paths that have to answer 200 from then on, with whose they are.
        open: paths of workflows, runs and tasks that were not yet seen to have ended.
        completed: what was shown of a job as completed, and before which kill.
        kills: the kills, in order.
        first_call: the calls that the cloud had seen before all this.
    """

    people: list[Person] = field(default_factory=list)
    acknowledged: dict[str, Person] = field(default_factory=dict)
    open: dict[str, Person] = field(default_factory=dict)
    completed: dict[str, tuple[Record, Person, int]] = field(default_factory=dict)
    kills: list[Kill] = field(default_factory=list)
    first_call: int = 0

    def saw(self, job_id: str, shown: Record, person: Person) -> None:
        """Remember what was shown of a completed job."""
        facts = {name: shown[name] for name in ("status", "artifact_id", "cost_usd")}
        self.completed.setdefault(job_id, (facts, person, len(self.kills)))


class Caller:
    """Asks a server for work and looks at it, writing everything into the ledger.

    Every method raises `httpx.TransportError` once the server is gone.
    """

    def __init__(self, url: str, ledger: Ledger, random: Random, numbers: Iterator[int]) -> None:
        self._client = httpx.Client(base_url=url, trust_env=False, timeout=30)
        self._ledger = ledger
        self._random = random
        self._numbers = numbers

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()

    def get(self, path: str, person: Person) -> httpx.Response:
        """Read something."""
        return self._client.get(path, headers=person.headers)

    def post(self, path: str, body: Record, person: Person) -> Record:
        """Ask for something, and remember that it was acknowledged."""
        answer = self._client.post(path, json=body, headers=person.headers)
        assert answer.status_code in (201, 202), answer.text
        data: Record = answer.json()["data"]
        self._ledger.acknowledged[f"{path}/{data['id']}"] = person
        if answer.status_code == 202:
            self._ledger.open[f"{path}/{data['id']}"] = person
        return data

    def sign_up(self, *providers: str) -> Person:
        """Open an account and connect vendors."""
        email = f"ada{next(self._numbers)}@example.org"
        answer = self._client.post("/v1/account", json={"email": email})
        assert answer.status_code == 201, answer.text
        person = Person({"Authorization": f"Bearer {answer.json()['data']['api_key']}"})
        self._ledger.people.append(person)
        self._ledger.acknowledged[f"/v1/account?{email}"] = person
        for provider in providers:
            self.connect(person, provider)
        return person

    def connect(self, person: Person, provider: str) -> None:
        """Point to the key of a vendor."""
        pointer = {
            "provider": provider,
            "connection_type": "environment",
            "secret_ref": VARIABLES[provider],
        }
        made = self.post("/v1/providers/connections", pointer, person)
        person.connections[provider] = made["id"]

    def work(self, person: Person) -> None:
        """Ask for something at random."""
        draw = self._random.random()
        if draw < 0.70:
            self.workflow(person)
        elif draw < 0.92 or set(person.connections) != {"minimax"}:
            self.run(person)
        else:
            self.task(person)

    def run(self, person: Person) -> None:
        """Ask for a single text."""
        provider = self._writer(person)
        body = {"name": "llm.generate", "input": self._words(), "options": pin(provider)}
        self.post("/v1/runs", body, person)

    def task(self, person: Person) -> None:
        """Hand over an objective."""
        body = {"objective": f"A short text about tea house number {next(self._numbers)}"}
        self.post("/v1/tasks", body, person)

    def workflow(self, person: Person) -> None:
        """Ask for a small graph: texts, now and then spoken or laid out."""
        nodes: list[Record] = []
        for i in range(self._random.randint(2, 6)):
            upstream = [node["id"] for node in nodes if self._random.random() < 0.4]
            nodes.append(self._node(f"n{i}", upstream, person))
        self.post("/v1/workflows", {"name": "some graph", "nodes": nodes}, person)

    def fixed_workflow(self, person: Person) -> str:
        """Ask for four nodes of three kinds; the id."""
        nodes = [
            {"id": "copy", "capability": "llm.generate", "input": self._words()},
            {
                "id": "speech",
                "capability": "speech.generate",
                "input": {"speed": self._pace()},
                "depends_on": ["copy"],
            },
            {"id": "line", "capability": "text.generate", "input": self._words()},
            {
                "id": "card",
                "capability": "composition.layout",
                "input": self._card(),
                "depends_on": ["copy", "line"],
            },
        ]
        made = self.post("/v1/workflows", {"name": "fixed", "nodes": nodes}, person)
        return str(made["id"])

    def _node(self, node_id: str, upstream: list[str], person: Person) -> Record:
        node: Record = {"id": node_id, "depends_on": upstream}
        draw = self._random.random()
        if draw < 0.15:
            return {**node, "capability": "composition.layout", "input": self._card()}
        if draw < 0.30:
            text = f"This is announcement number {next(self._numbers)}."
            return {**node, "capability": "speech.generate", "input": {"text": text}}
        capability = "llm.generate" if draw < 0.7 else "text.generate"
        options = pin(self._writer(person))
        return {**node, "capability": capability, "input": self._words(), "options": options}

    def _writer(self, person: Person) -> str:
        return self._random.choice([name for name in WRITERS if name in person.connections])

    def _words(self) -> Record:
        """A request that no other is equal to."""
        return {"objective": f"Line {next(self._numbers)} on tea"}

    def _pace(self) -> float:
        return round(1 + next(self._numbers) % 1000 / 1001, 6)

    def _card(self) -> Record:
        return {"title": f"Tea {next(self._numbers)}", "width": 240, "height": 200}

    def look(self, path: str) -> Record:
        """Read a workflow, run or task, and remember what it shows as completed."""
        person = self._ledger.open.get(path) or self._ledger.acknowledged[path]
        answer = self.get(path, person)
        assert answer.status_code == 200, f"{path}: {answer.text}"
        data: Record = answer.json()["data"]
        for shown in [data, *data.get("nodes", [])]:
            if shown.get("job_id") and shown["status"] == "completed":
                self._ledger.saw(shown["job_id"], shown, person)
        if data["status"] in FINAL:
            self._ledger.open.pop(path, None)
        return data

    def look_around(self) -> None:
        """Read one of what has not ended."""
        if self._ledger.open:
            self.look(self._random.choice(sorted(self._ledger.open)))

    def all_of(self, path: str, person: Person) -> list[Record]:
        """Every item of a list, page by page."""
        found: list[Record] = []
        cursor = None
        while True:
            after = f"&cursor={cursor}" if cursor else ""
            answer = self.get(f"{path}?limit=200{after}", person)
            assert answer.status_code == 200, answer.text
            data = answer.json()["data"]
            found += data["items"]
            cursor = data["next_cursor"]
            if cursor is None:
                return found

    def wait_for_all(self) -> None:
        """Wait until everything has ended: what was acknowledged, and what was not."""
        for person in self._ledger.people:
            for area in ("workflows", "runs", "tasks"):
                for item in self.all_of(f"/v1/{area}", person):
                    if item["status"] not in FINAL:
                        self._ledger.open.setdefault(f"/v1/{area}/{item['id']}", person)

        def over() -> bool:
            for path in list(self._ledger.open):
                self.look(path)
            return not self._ledger.open

        until(over, f"all comes to an end: {sorted(self._ledger.open)[:5]}", 60)


def pin(provider: str) -> Record:
    """Options that leave the router no choice, so that a repeated call is an equal one."""
    return {"provider": provider}


class Killing:
    """A server, killed at an instant that has nothing to do with what it is doing."""

    def __init__(self, server: Server, after_s: float) -> None:
        self._server = server
        self._timer = threading.Timer(after_s, self._strike)
        self.at: datetime | None = None
        self._timer.start()

    def _strike(self) -> None:
        self._server.kill()
        self.at = datetime.now(UTC)

    def over(self) -> datetime:
        """Wait until it is dead; when that was."""
        self._timer.join()
        self._server.wait()
        assert self.at is not None
        return self.at


def buried(cloud: Cloud, ledger: Ledger, at: datetime) -> None:
    """Write a kill down, once the calls that were on their way have arrived."""
    time.sleep(0.01)
    ledger.kills.append(Kill(at, len(cloud.calls())))


@dataclass
class Findings:
    """What is wrong, and how much was looked at."""

    wrong: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def examined(caller: Caller, cloud: Cloud, ledger: Ledger) -> Findings:
    """Hold what is there against what was promised; everything has ended by now."""
    found = Findings()
    calls = [call for call in cloud.quiet() if call["n"] > ledger.first_call]
    jobs: dict[str, Record] = {}
    _acknowledged(caller, ledger, found)
    for person in ledger.people:
        mine = {job["id"]: job for job in caller.all_of("/v1/jobs", person)}
        jobs |= mine
        workflows = caller.all_of("/v1/workflows", person)
        _workflows(caller, person, workflows, mine, found)
        _ended(caller, person, found)
        _artifacts(caller, person, mine.values(), found)
    _shown(caller, ledger, jobs, found)
    _attempts(jobs.values(), ledger, found)
    _calls(calls, jobs.values(), ledger, found)
    found.counts.update(
        kills=len(ledger.kills),
        acknowledged=len(ledger.acknowledged),
        jobs=len(jobs),
        shown_before_a_kill=sum(
            kill < len(ledger.kills) for _, _, kill in ledger.completed.values()
        ),
    )
    return found


def _acknowledged(caller: Caller, ledger: Ledger, found: Findings) -> None:
    """Everything that was acknowledged is there (promise P1)."""
    for path, person in ledger.acknowledged.items():
        status = caller.get(path.partition("?")[0], person).status_code
        if status != 200:
            found.wrong.append(f"{path} was acknowledged and is answered with {status}")


def _ended(caller: Caller, person: Person, found: Findings) -> None:
    """All is in a final state (promise P5), and nothing has failed: nothing gave cause to."""
    for area in ("workflows", "runs", "tasks"):
        for item in caller.all_of(f"/v1/{area}", person):
            # A reviewer may well find a task's result wanting.
            if item["status"] != "completed" and (area, item["status"]) != ("tasks", "failed"):
                found.wrong.append(f"{item['id']} is {item['status']}: {item.get('error')}")


def _workflows(
    caller: Caller,
    person: Person,
    workflows: Sequence[Record],
    jobs: Mapping[str, Record],
    found: Findings,
) -> None:
    """Each node is one job, which worked from what its upstream shows, and ended once."""
    of_node: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for job in jobs.values():
        if job["workflow_id"]:
            of_node[job["workflow_id"], job["node_id"]].append(job["id"])
    for (workflow_id, node_id), ids in of_node.items():
        if len(ids) > 1:
            found.wrong.append(f"{workflow_id} {node_id} has the jobs {ids}")
    for workflow in workflows:
        nodes = {node["id"]: node for node in workflow["nodes"]}
        mine = [jobs[node["job_id"]] for node in nodes.values() if node["job_id"]]
        own = [job for job in mine if job["workflow_id"] == workflow["id"]]
        for job in own:
            for up, artifact_id in job["from_artifacts"].items():
                if nodes[up]["artifact_id"] != artifact_id:
                    found.wrong.append(f"{job['id']} worked from another artifact of {up}")
        spent = sum(job["cost_incurred_usd"] for job in own)
        if abs(spent - workflow["cost_incurred_usd"]) > 1e-6:
            found.wrong.append(f"{workflow['id']} says it spent {workflow['cost_incurred_usd']}")
        events = caller.get(f"/v1/workflows/{workflow['id']}/events", person).json()["data"]
        ends = Counter(
            (event["type"], event["data"].get("node_id"))
            for event in events["items"]
            if event["type"].rpartition(".")[2] in FINAL
        )
        for end, times in ends.items():
            if times > 1:
                found.wrong.append(f"{workflow['id']} tells of {end} {times} times")
        if len(ends) != len(nodes) + 1:
            found.wrong.append(f"{workflow['id']} tells of these ends: {sorted(ends)}")


def _artifacts(caller: Caller, person: Person, jobs: Any, found: Findings) -> None:
    """A completed job has an artifact whose bytes are those recorded (promise P4)."""
    for job in jobs:
        if job["status"] != "completed":
            continue
        record = caller.get(f"/v1/artifacts/{job['artifact_id']}", person)
        content = caller.get(f"/v1/artifacts/{job['artifact_id']}/content", person)
        if record.status_code != 200 or content.status_code != 200:
            found.wrong.append(f"the artifact of {job['id']} cannot be read")
            continue
        artifact = record.json()["data"]
        same = hashlib.sha256(content.content).hexdigest() == artifact["sha256"]
        if not same or len(content.content) != artifact["size_bytes"]:
            found.wrong.append(f"{artifact['id']} has other bytes than recorded")
        found.counts["artifacts"] += 1


def _shown(caller: Caller, ledger: Ledger, jobs: Mapping[str, Record], found: Findings) -> None:
    """What was shown as completed is as it was."""
    for job_id, (facts, _, _) in ledger.completed.items():
        job = jobs.get(job_id)
        now = job and {name: job[name] for name in facts}
        if now != facts:
            found.wrong.append(f"{job_id} was shown as {facts} and is {now}")


def _attempts(jobs: Any, ledger: Ledger, found: Findings) -> None:
    """Attempts are interrupted by kills alone, each by one, and cost what the job says."""
    for job in jobs:
        paid = [attempt for attempt in job["attempts"] if attempt["provider"]]
        if abs(sum(a["cost_usd"] or 0 for a in paid) - job["cost_incurred_usd"]) > 1e-6:
            found.wrong.append(f"{job['id']} says it spent {job['cost_incurred_usd']}: {paid}")
        if sum(attempt["status"] == "completed" for attempt in paid) > 1:
            found.wrong.append(f"{job['id']} was done twice")
        found.counts["attempts"] += len(paid)
        for attempt in job["attempts"]:
            if attempt["status"] == "running":
                found.wrong.append(f"{job['id']} has an attempt that runs on")
            if attempt["status"] != "interrupted":
                continue
            began = datetime.fromisoformat(attempt["started_at"])
            ended = datetime.fromisoformat(attempt["ended_at"])
            if not any(began <= kill.at <= ended for kill in ledger.kills):
                found.wrong.append(f"{job['id']} was interrupted when nothing was killed")
            found.counts["interrupted"] += bool(attempt["provider"])


def _calls(calls: Sequence[Record], jobs: Any, ledger: Ledger, found: Findings) -> None:
    """Each billed call is an attempt of some job; the others were in flight at a kill.

    The cloud's ids of requests follow from what was asked and how often, so that each attempt
    which has one can be led back to the call.
    """
    billed: defaultdict[str, list[int]] = defaultdict(list)
    seen: defaultdict[str, list[int]] = defaultdict(list)
    cloud = SandboxState(0, 0)
    by_request: dict[str, str] = {}
    for call in calls:
        seen[call["digest"]].append(call["n"])
        digest = call["digest"]
        # Some vendors have an id of their own, or one in the body, which is the same each time.
        by_request[cloud.fresh("request", digest)[:32]] = digest
        by_request[cloud.fresh("anthropic", digest)[:24]] = digest
        by_request |= {digest[:32]: digest, digest[:22]: digest}
        if call["billed"] and call["status"] == 200:
            billed[call["digest"]].append(call["n"])
    claimed: Counter[str] = Counter()
    excused: Counter[str] = Counter()
    spare = 0
    for job in jobs:
        ids = [a["vendor_request_id"] for a in job["attempts"] if a["vendor_request_id"]]
        asked = {by_request.get(one.removeprefix("req_"), "") for one in ids}
        for one in ids:
            claimed[by_request.get(one.removeprefix("req_"), "")] += 1
        cut = sum(a["status"] == "interrupted" and bool(a["provider"]) for a in job["attempts"])
        if len(asked) == 1:
            excused[asked.pop()] += cut
        spare += cut
        facts = ledger.completed.get(job["id"])
        for one in ids:
            digest = by_request.get(one.removeprefix("req_"), "")
            late = [n for n in seen[digest] if facts and n > _calls_before(ledger, facts[2])]
            if late:
                found.wrong.append(f"{job['id']} was shown as completed, and then called again")
    extra = 0
    for digest, numbers in billed.items():
        over = len(numbers) - claimed[digest]
        extra += max(0, over)
        if over > excused[digest]:
            found.wrong.append(
                f"{digest[:8]} was billed {len(numbers)} times, claimed {claimed[digest]} times,"
                f" and in flight at {excused[digest]} kills"
            )
    if extra > spare:
        found.wrong.append(f"{extra} calls more than claimed, and {spare} attempts interrupted")
    found.counts.update(billed=sum(map(len, billed.values())), billed_again=extra)


def _calls_before(ledger: Ledger, kill: int) -> int:
    """The calls that had reached the cloud when a kill was over; no end to them after the last."""
    return ledger.kills[kill].calls if kill < len(ledger.kills) else sys.maxsize


def sound(data_dir: Path) -> bool:
    """Whether SQLite finds nothing wrong with the database of a server that has stopped."""
    with closing(sqlite3.connect(data_dir / "state.db")) as connection:
        (answer,) = connection.execute("PRAGMA integrity_check").fetchone()
    return bool(answer == "ok")
