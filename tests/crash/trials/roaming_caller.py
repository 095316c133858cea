"""A caller that sends each request to random engines until an engine answers it.

This is all that a client must do if engines, their database and their network fail: every request
for work has an idempotency key, and is retried with it after a lost response.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx

from tests.crash.callers import Caller, Ledger, Person, pin
from tests.crash.processes import Record
from tests.support.timing import wait_until

# A frozen engine does not answer, so the caller tries another engine after this time.
ANSWER_S = 2.0
DAY_USD = 50.0
# More than the store keeps in the row of a record.
UPLOAD_BYTES = 20_000
FOLLOWED = 4


@dataclass(frozen=True)
class SentRequest:
    """An accepted request, which can be repeated."""

    path: str
    body: Record
    person: Person
    key: str
    id: str


@dataclass
class TrialNotes:
    """The records of a caller in addition to the ledger.

    Attributes:
        keys: ids of the accounts' keys, in the order of accounts.
        sent: accepted requests with an idempotency key.
        cancelled: paths that the caller cancelled.
        uploaded: hash and account of each upload, by the artifact's id.
        followed: events by path, as they were read in pieces.
        answers: number of failures of each kind.
        wrong: a sentence for each wrong response.
    """

    keys: list[str] = field(default_factory=list)
    sent: list[SentRequest] = field(default_factory=list)
    cancelled: set[str] = field(default_factory=set)
    uploaded: dict[str, tuple[str, Person]] = field(default_factory=dict)
    followed: dict[str, list[Record]] = field(default_factory=dict)
    answers: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


class RoamingCaller(Caller):
    """A caller of several equal engines.

    Args:
        urls: addresses of the engines.
        ledger: receives acknowledgements and completed jobs.
        random: draws the requests.
        numbers: make the requests different.
        on_silence: called if an engine has not answered.
    """

    def __init__(
        self,
        urls: Sequence[str],
        ledger: Ledger,
        random: Random,
        numbers: Iterator[int],
        on_silence: Callable[[], None],
    ) -> None:
        super().__init__(urls[0], ledger, random, numbers)
        self._client.timeout = httpx.Timeout(ANSWER_S)
        self._urls = urls
        self._on_silence = on_silence
        self.notes = TrialNotes()

    def get(self, path: str, person: Person) -> httpx.Response:
        """Read a path from any engine."""
        return self._send("GET", path, headers=person.headers)

    def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request to random engines until an engine answers it."""
        answers: list[httpx.Response] = []

        def is_answered() -> bool:
            url = self._random.choice(self._urls)
            try:
                answer = self._client.request(method, url + path, **options)
            except httpx.TransportError as error:
                self._count(type(error).__name__)
                self._on_silence()
                return False
            if answer.status_code in (429, 503):
                self._check_refusal(answer)
            if answer.status_code != 503:
                answers.append(answer)
            return bool(answers)

        wait_until(is_answered, f"{method} {path} is answered")
        return answers[0]

    def _count(self, kind: str) -> None:
        self.notes.answers[kind] = self.notes.answers.get(kind, 0) + 1

    def _check_refusal(self, answer: httpx.Response) -> None:
        """Check that a refusal has the code of its status and a `Retry-After`."""
        code = answer.json()["error"]["code"]
        self._count(f"{answer.status_code} {code}")
        expected = "UNAVAILABLE" if answer.status_code == 503 else "RATE_LIMITED"
        if code != expected or not 1 <= int(answer.headers.get("Retry-After", 0)) <= 60:
            self.notes.wrong.append(f"answered with {answer.headers} {answer.text}")

    def post(self, path: str, body: Record, person: Person) -> Record:
        """Create a resource with an idempotency key, and record the acknowledgement.

        Returns:
            the record, or an empty record if the account's queue is full.
        """
        key = f"trial-{next(self._numbers)}"
        headers = {**person.headers, "Idempotency-Key": key}
        answer = self._send("POST", path, json=body, headers=headers)
        if answer.status_code == 429:
            return {}
        data = self._record_acknowledged(path, answer, person)
        self.notes.sent.append(SentRequest(path, body, person, key, data["id"]))
        return data

    def sign_up(self, *providers: str) -> Person:
        """Create an account, take a key with a daily allowance, and connect providers."""
        owner = super().sign_up()
        scopes = ["read", "write", "admin"]
        body = {"name": "trial", "scopes": scopes, "max_cost_usd_per_day": DAY_USD}
        answer = self._send("POST", "/v1/account/keys", json=body, headers=owner.headers)
        assert answer.status_code == 201, answer.text
        data = answer.json()["data"]
        person = Person({"Authorization": f"Bearer {data['api_key']}"})
        self._ledger.people[-1] = person
        self._ledger.acknowledged = {
            path: person if holder is owner else holder
            for path, holder in self._ledger.acknowledged.items()
        }
        self.notes.keys.append(data["id"])
        for provider in providers:
            self.connect(person, provider)
        return person

    def work(self, person: Person) -> None:
        """Create work at random, upload, repeat a request or cancel."""
        draw = self._random.random()
        if draw < 0.05:
            self.upload(person)
        elif draw < 0.12:
            self.repeat()
        elif draw < 0.18:
            self.cancel()
        else:
            super().work(person)

    def upload(self, person: Person) -> None:
        """Upload bytes, and record their hash."""
        content = self._random.randbytes(UPLOAD_BYTES)
        key = f"trial-{next(self._numbers)}"
        answer = self._send(
            "POST",
            "/v1/artifacts",
            files={"file": ("bytes.bin", content, "application/octet-stream")},
            headers={**person.headers, "Idempotency-Key": key},
        )
        assert answer.status_code == 201, answer.text
        artifact_id = answer.json()["data"]["id"]
        self._ledger.acknowledged[f"/v1/artifacts/{artifact_id}"] = person
        self.notes.uploaded[artifact_id] = hashlib.sha256(content).hexdigest(), person

    def repeat(self) -> None:
        """Repeat an accepted request, like a client after a lost response."""
        if not self.notes.sent:
            return
        sent = self._random.choice(self.notes.sent)
        headers = {**sent.person.headers, "Idempotency-Key": sent.key}
        answer = self._send("POST", sent.path, json=sent.body, headers=headers)
        replayed = answer.headers.get("Idempotency-Replayed")
        if (answer.json().get("data") or {}).get("id") != sent.id or replayed != "true":
            self.notes.wrong.append(f"{sent.id} was requested again: {answer.text}")
        self._count("replayed")

    def cancel(self) -> None:
        """Cancel work that is under way."""
        paths = [path for path in sorted(self._ledger.open) if path not in self.notes.cancelled]
        if not paths:
            return
        path = self._random.choice(paths)
        self.notes.cancelled.add(path)
        headers = self._ledger.open[path].headers
        answer = self._send("POST", f"{path}/cancel", headers=headers)
        if answer.status_code != 200:
            self.notes.wrong.append(f"{path} was cancelled: {answer.status_code} {answer.text}")

    def _node(self, node_id: str, upstream: list[str], person: Person) -> Record:
        node = super()._node(node_id, upstream, person)
        if node["capability"] != "speech.generate" or "minimax" in person.connections:
            return node
        text = {"capability": "llm.generate", "input": self._words()}
        return {**node, **text, "options": pin(self._writer(person))}

    def follow(self) -> None:
        """Read further events of some work at any engine, and check that none is missing."""
        followed = self.notes.followed
        work = [path for path in self._ledger.open if "/tasks" not in path]
        under_way = [path for path in followed if path in self._ledger.open]
        if len(under_way) < FOLLOWED and work:
            path = self._random.choice(sorted(work))
        elif under_way:
            path = self._random.choice(under_way)
        else:
            return
        events = followed.setdefault(path, [])
        person = self._ledger.acknowledged[path]
        answer = self.get(f"{path}/events?after={len(events)}", person)
        assert answer.status_code == 200, answer.text
        events += answer.json()["data"]["items"]
        if [event["n"] for event in events] != list(range(1, len(events) + 1)):
            self.notes.wrong.append(f"the events of {path} have gaps: {events}")
