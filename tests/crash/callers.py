"""Callers that create work on servers, and record every acknowledgement and completed job."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

import httpx

from tests.conftest import POINTERS
from tests.crash.processes import CloudProcess, Record, open_http
from tests.support.timing import wait_until

FINAL = frozenset({"completed", "failed", "cancelled"})
WRITERS = ("minimax", "openai", "anthropic", "google")


@dataclass(frozen=True)
class Person:
    """An account: the headers of its key, and its connections by provider."""

    headers: Mapping[str, str]
    connections: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Kill:
    """The begin and end of a kill of a server, and the number of calls of the cloud by its end."""

    at: datetime
    over: datetime
    calls: int


@dataclass
class Ledger:
    """A record of acknowledgements, of completed jobs that a caller has read, and of kills.

    Attributes:
        people: accounts that were acknowledged.
        acknowledged: paths that must answer 200 from then on, with their accounts.
        open: paths of workflows, runs and tasks that no caller has read as ended yet.
        completed: facts of each job that a caller has read as completed, with the account and
            the number of kills before.
        kills: kills in order.
        first_call: number of calls of the cloud before the first entry.
    """

    people: list[Person] = field(default_factory=list)
    acknowledged: dict[str, Person] = field(default_factory=dict)
    open: dict[str, Person] = field(default_factory=dict)
    completed: dict[str, tuple[Record, Person, int]] = field(default_factory=dict)
    kills: list[Kill] = field(default_factory=list)
    first_call: int = 0

    def record_completed(self, job_id: str, record: Record, person: Person) -> None:
        """Record the facts of a completed job, unless they are recorded."""
        facts = {name: record[name] for name in ("status", "artifact_id", "cost_usd")}
        self.completed.setdefault(job_id, (facts, person, len(self.kills)))


class Caller:
    """Creates work on a server and reads it, and records everything in the ledger.

    Every method raises `httpx.TransportError` if the server is gone.
    """

    def __init__(self, url: str, ledger: Ledger, random: Random, numbers: Iterator[int]) -> None:
        self._client = open_http(url)
        self._ledger = ledger
        self._random = random
        self._numbers = numbers

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def get(self, path: str, person: Person) -> httpx.Response:
        """Read a path."""
        return self._receive(self._client.get(path, headers=person.headers))

    def _receive(self, answer: httpx.Response) -> httpx.Response:
        """Return a response; a subclass may reject it."""
        return answer

    def post(self, path: str, body: Record, person: Person) -> Record:
        """Create a resource, and record the acknowledgement."""
        answer = self._receive(self._client.post(path, json=body, headers=person.headers))
        return self._record_acknowledged(path, answer, person)

    def _record_acknowledged(self, path: str, answer: httpx.Response, person: Person) -> Record:
        assert answer.status_code in (201, 202), answer.text
        data: Record = answer.json()["data"]
        self._ledger.acknowledged[f"{path}/{data['id']}"] = person
        if answer.status_code == 202:
            self._ledger.open[f"{path}/{data['id']}"] = person
        return data

    def sign_up(self, *providers: str) -> Person:
        """Create an account and connect providers."""
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
        """Create a connection that refers to a key in the environment."""
        pointer = {
            "provider": provider,
            "connection_type": "environment",
            "secret_ref": POINTERS[provider],
        }
        connection = self.post("/v1/providers/connections", pointer, person)
        person.connections[provider] = connection["id"]

    def work(self, person: Person) -> None:
        """Create a workflow, run or task at random."""
        draw = self._random.random()
        if draw < 0.70:
            self.workflow(person)
        elif draw < 0.92 or set(person.connections) != {"minimax"}:
            self.run(person)
        else:
            self.task(person)

    def run(self, person: Person) -> None:
        """Create a run of a text."""
        provider = self._writer(person)
        body = {"name": "llm.generate", "input": self._words(), "options": pin(provider)}
        self.post("/v1/runs", body, person)

    def task(self, person: Person) -> None:
        """Create a task."""
        body = {"objective": f"A short text about tea house number {next(self._numbers)}"}
        self.post("/v1/tasks", body, person)

    def workflow(self, person: Person) -> None:
        """Create a small workflow of texts, with some speech and cards."""
        nodes: list[Record] = []
        for i in range(self._random.randint(2, 6)):
            upstream = [node["id"] for node in nodes if self._random.random() < 0.4]
            nodes.append(self._node(f"n{i}", upstream, person))
        self.post("/v1/workflows", {"name": "some graph", "nodes": nodes}, person)

    def create_fixed_workflow(self, person: Person) -> str:
        """Create a workflow of four nodes of three kinds; return its id."""
        speed = round(1 + next(self._numbers) % 1000 / 1001, 6)
        nodes = [
            {"id": "copy", "capability": "llm.generate", "input": self._words()},
            {
                "id": "speech",
                "capability": "speech.generate",
                "input": {"speed": speed},
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
        workflow = self.post("/v1/workflows", {"name": "fixed", "nodes": nodes}, person)
        return str(workflow["id"])

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
        # Cards before it are no pictures to see: not every provider bounds their cost.
        words = {**self._words(), "images": []}
        return {**node, "capability": capability, "input": words, "options": options}

    def _writer(self, person: Person) -> str:
        return self._random.choice([name for name in WRITERS if name in person.connections])

    def _words(self) -> Record:
        """Return an input that differs from all others."""
        return {"objective": f"Line {next(self._numbers)} on tea"}

    def _card(self) -> Record:
        return {"title": f"Tea {next(self._numbers)}", "width": 240, "height": 200}

    def look(self, path: str) -> Record:
        """Read a workflow, run or task, and record its completed jobs."""
        person = self._ledger.open.get(path) or self._ledger.acknowledged[path]
        answer = self.get(path, person)
        assert answer.status_code == 200, f"{path}: {answer.text}"
        data: Record = answer.json()["data"]
        for record in [data, *data.get("nodes", [])]:
            if record.get("job_id") and record["status"] == "completed":
                self._ledger.record_completed(record["job_id"], record, person)
        if data["status"] in FINAL:
            self._ledger.open.pop(path, None)
        return data

    def look_around(self) -> None:
        """Read a random open workflow, run or task."""
        if self._ledger.open:
            self.look(self._random.choice(sorted(self._ledger.open)))

    def look_at_all(self) -> bool:
        """Read everything that is open; return whether all of it has ended."""
        for path in list(self._ledger.open):
            self.look(path)
        return not self._ledger.open

    def list_all(self, path: str, person: Person) -> list[Record]:
        """Return all items of a list, page by page."""
        items: list[Record] = []
        cursor = None
        while True:
            after = f"&cursor={cursor}" if cursor else ""
            answer = self.get(f"{path}?limit=200{after}", person)
            assert answer.status_code == 200, answer.text
            data = answer.json()["data"]
            items += data["items"]
            cursor = data["next_cursor"]
            if cursor is None:
                return items

    def wait_for_all(self) -> None:
        """Wait until all work has ended, acknowledged or not."""
        for person in self._ledger.people:
            for area in ("workflows", "runs", "tasks"):
                for item in self.list_all(f"/v1/{area}", person):
                    if item["status"] not in FINAL:
                        self._ledger.open.setdefault(f"/v1/{area}/{item['id']}", person)
        wait_until(self.look_at_all, f"all work ends: {sorted(self._ledger.open)[:5]}", 60)


def pin(provider: str) -> Record:
    """Return options that fix the provider, so that a repeated call is equal."""
    return {"provider": provider}


# The cloud accepts, reads and logs a call in three turns of its loop, and so it does a request.
ROUND_TRIPS = 3


def record_kill(cloud: CloudProcess, ledger: Ledger, at: datetime, lasts_s: float = 0.0) -> None:
    """Record a kill that is over, after the calls on their way to the cloud have arrived.

    Args:
        cloud: the vendor cloud.
        ledger: receives the entry.
        at: begin of the kill.
        lasts_s: further seconds for which the fault lasts, if it was not a kill.
    """
    over = datetime.now(UTC) + timedelta(seconds=lasts_s)
    for _ in range(ROUND_TRIPS):
        cloud.calls()
    ledger.kills.append(Kill(at, over, len(cloud.calls())))
