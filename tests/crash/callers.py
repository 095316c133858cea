"""Asks servers for work, and remembers what they acknowledged and showed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

import httpx

from tests.crash.processes import CloudProcess, Record, open_http
from tests.support.timing import wait_until

FINAL = frozenset({"completed", "failed", "cancelled"})
VARIABLES = {
    "minimax": "MINIMAX_API_KEY",
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GEMINI_API_KEY",
    "elevenlabs": "ELEVENLABS_API_KEY",
}
WRITERS = ("minimax", "openai", "anthropic", "google")


@dataclass(frozen=True)
class Person:
    """An account: the headers of its key, and its connections by provider."""

    headers: Mapping[str, str]
    connections: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Kill:
    """From when to when a server was killed, and how many calls the cloud had seen by then."""

    at: datetime
    over: datetime
    calls: int


@dataclass
class Ledger:
    """A record of what servers acknowledged and showed, and of when they were killed.

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
        self._client = open_http(url)
        self._ledger = ledger
        self._random = random
        self._numbers = numbers

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()

    def get(self, path: str, person: Person) -> httpx.Response:
        """Read something."""
        return self._receive(self._client.get(path, headers=person.headers))

    def _receive(self, answer: httpx.Response) -> httpx.Response:
        """Take an answer, whatever it says."""
        return answer

    def post(self, path: str, body: Record, person: Person) -> Record:
        """Ask for something, and remember that it was acknowledged."""
        answer = self._receive(self._client.post(path, json=body, headers=person.headers))
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

    def create_fixed_workflow(self, person: Person) -> str:
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

    def look_at_all(self) -> bool:
        """Read all that has not ended; tell whether nothing is left of it."""
        for path in list(self._ledger.open):
            self.look(path)
        return not self._ledger.open

    def list_all(self, path: str, person: Person) -> list[Record]:
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
                for item in self.list_all(f"/v1/{area}", person):
                    if item["status"] not in FINAL:
                        self._ledger.open.setdefault(f"/v1/{area}/{item['id']}", person)

        wait_until(self.look_at_all, f"all comes to an end: {sorted(self._ledger.open)[:5]}", 60)


def pin(provider: str) -> Record:
    """Options that leave the router no choice, so that a repeated call is an equal one."""
    return {"provider": provider}


# The cloud accepts, reads and logs a call in a turn of its loop each; a request takes as many.
ROUND_TRIPS = 3


def record_kill(cloud: CloudProcess, ledger: Ledger, at: datetime, lasts_s: float = 0.0) -> None:
    """Write a kill down that is over, once the calls that were on their way have arrived.

    Args:
        cloud: the vendor cloud.
        ledger: where it is written.
        at: when it began.
        lasts_s: for how much longer something fails, where it was no kill.
    """
    over = datetime.now(UTC) + timedelta(seconds=lasts_s)
    for _ in range(ROUND_TRIPS):
        cloud.calls()
    ledger.kills.append(Kill(at, over, len(cloud.calls())))
