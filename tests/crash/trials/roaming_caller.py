"""Asks any of several engines for work, and again another one, until it is answered.

It is all that a client has to do where engines, their database and their network fail: every
request for work carries an idempotency key, and is sent again by it when its answer was lost.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx

from tests.crash.callers import Caller, Ledger, Person
from tests.crash.processes import Record
from tests.support.timing import wait_until

# An engine that stands still answers nothing; another one is asked after so long.
ANSWER_S = 2.0
DAY_USD = 50.0
# More than is kept in the row of a record.
UPLOAD_BYTES = 20_000
FOLLOWED = 4


@dataclass(frozen=True)
class SentRequest:
    """A request that was accepted, and can be sent again."""

    path: str
    body: Record
    person: Person
    key: str
    id: str


@dataclass
class TrialNotes:
    """What a caller knows beside what the ledger has.

    Attributes:
        keys: the ids of the keys that people use, in the order of people.
        sent: what was accepted by an idempotency key.
        cancelled: the paths of what it asked to be cancelled.
        uploaded: the hashes of what it uploaded, by the artifact's id, with whose it is.
        followed: the events of some work, as they were read piece by piece.
        answers: how many answers there were of each kind that is no success.
        wrong: what should not have been answered.
    """

    keys: list[str] = field(default_factory=list)
    sent: list[SentRequest] = field(default_factory=list)
    cancelled: set[str] = field(default_factory=set)
    uploaded: dict[str, tuple[str, Person]] = field(default_factory=dict)
    followed: dict[str, list[Record]] = field(default_factory=dict)
    answers: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


class RoamingCaller(Caller):
    """A caller of several engines that are all alike.

    Args:
        urls: where they are.
        ledger: where it writes what was acknowledged and shown.
        random: decides what it asks for.
        numbers: tell its requests apart.
        on_silence: called when one has not answered.
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
        """Read something, from whichever engine answers."""
        return self._send("GET", path, headers=person.headers)

    def _send(self, method: str, path: str, **given: Any) -> httpx.Response:
        """Send a request to any engine, and again until one has answered it."""
        answers: list[httpx.Response] = []

        def is_answered() -> bool:
            url = self._random.choice(self._urls)
            try:
                answer = self._client.request(method, url + path, **given)
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
        """Check that who is told to ask again is told so in the one envelope, and when."""
        code = answer.json()["error"]["code"]
        self._count(f"{answer.status_code} {code}")
        wanted = "UNAVAILABLE" if answer.status_code == 503 else "RATE_LIMITED"
        if code != wanted or not 1 <= int(answer.headers.get("Retry-After", 0)) <= 60:
            self.notes.wrong.append(f"answered with {answer.headers} {answer.text}")

    def post(self, path: str, body: Record, person: Person) -> Record:
        """Ask for something by a key of its own, and remember that it was acknowledged.

        Returns:
            the record; an empty one where too much is under way already.
        """
        key = f"trial-{next(self._numbers)}"
        headers = {**person.headers, "Idempotency-Key": key}
        answer = self._send("POST", path, json=body, headers=headers)
        if answer.status_code == 429:
            return {}
        assert answer.status_code in (201, 202), answer.text
        data: Record = answer.json()["data"]
        self._ledger.acknowledged[f"{path}/{data['id']}"] = person
        self.notes.sent.append(SentRequest(path, body, person, key, data["id"]))
        if answer.status_code == 202:
            self._ledger.open[f"{path}/{data['id']}"] = person
        return data

    def sign_up(self, *providers: str) -> Person:
        """Open an account, take a key with a day's allowance, and connect vendors."""
        owner = super().sign_up()
        body = {"name": "trial", "scopes": ["read", "write", "admin"]}
        answer = self._send(
            "POST",
            "/v1/account/keys",
            json={**body, "max_cost_usd_per_day": DAY_USD},
            headers=owner.headers,
        )
        assert answer.status_code == 201, answer.text
        data = answer.json()["data"]
        person = Person({"Authorization": f"Bearer {data['api_key']}"})
        self._ledger.people[-1] = person
        self._ledger.acknowledged = {
            path: person if whose is owner else whose
            for path, whose in self._ledger.acknowledged.items()
        }
        self.notes.keys.append(data["id"])
        for provider in providers:
            self.connect(person, provider)
        return person

    def work(self, person: Person) -> None:
        """Ask for something at random, or for something that was asked for before."""
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
        """Upload bytes, and remember their hash."""
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
        """Send something again that was accepted, as a client does that has lost the answer."""
        if not self.notes.sent:
            return
        sent = self._random.choice(self.notes.sent)
        headers = {**sent.person.headers, "Idempotency-Key": sent.key}
        answer = self._send("POST", sent.path, json=sent.body, headers=headers)
        replayed = answer.headers.get("Idempotency-Replayed")
        if (answer.json().get("data") or {}).get("id") != sent.id or replayed != "true":
            self.notes.wrong.append(f"{sent.id} was asked for again: {answer.text}")
        self._count("replayed")

    def cancel(self) -> None:
        """Cancel something that is under way."""
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
        return {"id": node_id, "depends_on": upstream, **self._text_node(person)}

    def _text_node(self, person: Person) -> Record:
        options = {"provider": self._writer(person)}
        return {"capability": "llm.generate", "input": self._words(), "options": options}

    def follow(self) -> None:
        """Read on in the events of some work, at any engine: none is missing or comes twice."""
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
