"""The specification's state machine of a task, for any planner, reviewer and person.

It speaks HTTP to the service, as any caller does; only the process is killed from inside.
"""

import asyncio
from itertools import pairwise
from typing import Any

import httpx
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from tests.contract.tasks.scripts import GOOD, REFUSED, WORSE, AnswerScript
from tests.support.engine_machine import EngineMachine
from tests.support.timing import PATIENCE_S
from toolkit.engine import Engine
from toolkit.local import open_engine
from toolkit.server import create_app
from toolkit.settings import Settings

Json = dict[str, Any]
FINAL = frozenset({"completed", "failed"})
AT_REST = FINAL | {"blocked"}
# The manager flow of the specification, and its end by a caller or a budget.
BY_ITSELF = {
    ("planning", "executing"), ("planning", "blocked"), ("planning", "failed"),
    ("executing", "reviewing"), ("executing", "failed"),
    ("reviewing", "completed"), ("reviewing", "executing"), ("reviewing", "failed"),
    ("blocked", "planning"), ("blocked", "failed"),
}  # fmt: skip
RERUNS = {(before, "executing") for before in ("reviewing", *FINAL)}
ANSWERS = {"good": GOOD, "long": WORSE, "refused": REFUSED, "blank": " "}
TEXT = {"id": "text", "capability": "llm.generate", "input": {"objective": "30 words about tea"}}
PLANS: dict[str, list[Json]] = {
    "text": [TEXT],
    "texts": [TEXT, {**TEXT, "id": "more", "input": {"objective": "A 30-word text about tea"}}],
    "facts": [
        {"id": "facts", "capability": "research.gather", "input": {"topic": "Tea"},
         "optional": True},
        {**TEXT, "depends_on": ["facts"]},
    ],
    "speech": [
        TEXT, {"id": "voice", "capability": "speech.generate", "depends_on": ["text"]},
    ],
}  # fmt: skip


class TaskMachine(EngineMachine):
    """Tasks that a caller creates and judges, with a scripted model.

    Attributes:
        tasks: the record of each task when it was last at rest.
        verdicts: number of accepted verdicts of a person, by task.
        has_voice: whether a provider of speech is connected.
    """

    engine: Engine

    def __init__(self) -> None:
        super().__init__()
        self.script = AnswerScript(self.faults)
        self.headers: dict[str, str] = {}
        self.tasks: dict[str, Json] = {}
        self.verdicts: dict[str, int] = {}
        self.has_voice = False

    async def open(self) -> Engine:
        """Open an engine, and a client of its service."""
        engine = await open_engine(
            Settings(
                data_dir=self.folder,
                sandbox=True,
                retry_base_s=0.001,
                retries=0,
                breaker_failures=1_000,
                lease_s=1.0,
                rate_limit_burst=1_000_000,
            ),
            faults=self.faults,
        )
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(create_app(engine)), base_url="http://service.test"
        )
        return engine

    async def prepare(self) -> None:
        """Create an account that has connected a language model."""
        response = await self.send("POST", "/account", {"email": "ada@example.org"})
        self.headers = {"Authorization": f"Bearer {response.json()['data']['api_key']}"}
        await self.connect("openai", "OPENAI_API_KEY")

    async def send(self, method: str, path: str, body: Json | None = None) -> httpx.Response:
        """Send a request."""
        return await self.http.request(method, f"/v1{path}", json=body, headers=self.headers)

    async def read(self, path: str) -> Any:
        """Read the data at a path."""
        response = await self.send("GET", path)
        assert response.status_code == 200, response.text
        return response.json()["data"]

    async def connect(self, provider: str, variable: str) -> None:
        """Register a connection."""
        pointer = {"connection_type": "environment", "secret_ref": variable, "provider": provider}
        response = await self.send("POST", "/providers/connections", pointer)
        assert response.status_code == 201, response.text

    def pick(self, index: int) -> str:
        """Pick a task by its index."""
        return sorted(self.tasks)[index % len(self.tasks)]

    @precondition(lambda self: len(self.tasks) < 3)
    @rule(
        plan=st.sampled_from([*PLANS, "vague"]),
        answers=st.lists(st.sampled_from([*ANSWERS, "away"]), max_size=4),
        limit=st.sampled_from([None, 0.000001, 0.0005, 0.05]),
    )
    def create(self, plan: str, answers: list[str], limit: float | None) -> None:
        """Create a task, and script the answers of the model."""
        for answer in answers:
            if answer == "away":
                self.faults.fail("openai", status=503, times=2)
            else:
                self.script.say(ANSWERS[answer])
        body: Json = {"objective": "A text about tea", "constraints": {"max_cost_usd": limit}}
        body |= {"objective": "Something nice, please"} if plan == "vague" else {}
        body |= {"plan": {"nodes": PLANS[plan]}} if plan in PLANS else {}
        response = self.run(self.send("POST", "/tasks", body))
        assert response.status_code == 202, response.text
        assert response.json()["status"] == "planning"
        self.tasks[response.json()["id"]] = {}
        self.verdicts[response.json()["id"]] = 0

    @precondition(lambda self: self.tasks)
    @rule(index=st.integers(0, 9))
    def cancel(self, index: int) -> None:
        """Cancel a task in any state."""
        response = self.run(self.send("POST", f"/tasks/{self.pick(index)}/cancel"))
        assert response.json()["status"] in FINAL

    @precondition(lambda self: self.tasks)
    @rule(index=st.integers(0, 9), answer=st.sampled_from([None, "A paragraph about tea"]))
    def resume(self, index: int, answer: str | None) -> None:
        """Resume a task that may be blocked, with or without an answer."""
        task_id = self.pick(index)
        before = self.run(self.read(f"/tasks/{task_id}"))
        body = None if answer is None else {"answer": answer}
        response = self.run(self.send("POST", f"/tasks/{task_id}/resume", body))
        if before["status"] == "blocked":
            fits = (before["question"] is None) == (answer is None)
            assert response.status_code == (200 if fits else 400), response.text
        elif before["status"] in FINAL:
            assert response.status_code == 409, response.text

    @precondition(lambda self: not self.has_voice)
    @rule()
    def connect_voice(self) -> None:
        """Register the connection that blocked tasks need."""
        self.run(self.connect("elevenlabs", "ELEVENLABS_API_KEY"))
        self.has_voice = True

    @precondition(lambda self: self.tasks)
    @rule(
        index=st.integers(0, 9),
        decision=st.sampled_from(["pass", "fail", "retry"]),
        attempt=st.sampled_from([None, 1, 2, 3]),
    )
    def judge(self, index: int, decision: str, attempt: int | None) -> None:
        """Submit a person's verdict on a task that may have ended."""
        task_id = self.pick(index)
        before = self.run(self.read(f"/tasks/{task_id}"))
        issues = ["Say when."] if decision == "retry" else []
        body = {"decision": decision, "attempt": attempt, "issues": issues}
        response = self.run(self.send("POST", f"/tasks/{task_id}/reviews", body))
        assert response.status_code in {200, 400, 402, 409}, response.text
        if response.status_code != 200:
            return
        assert before["status"] in FINAL
        self.verdicts[task_id] += 1
        self.tasks[task_id] = {}
        after = response.json()["data"]
        if decision == "pass":
            assert (after["status"], after["error"]) == ("completed", None)
            assert attempt in {None, after["final_attempt"]}
        elif decision == "fail":
            assert (after["status"], after["final_artifact_id"]) == ("failed", None)
        assert after["reviews"][len(before["reviews"])]["score"] is None

    @invariant()
    def the_specification_holds(self) -> None:
        """Check the record and the events of every task."""
        for task_id in self.tasks:
            self.run(self.check(task_id))

    async def check(self, task_id: str) -> None:
        """Check a task."""
        events = (await self.read(f"/tasks/{task_id}/events"))["items"]
        task = await self.read(f"/tasks/{task_id}")
        assert [event["n"] for event in events] == list(range(1, len(events) + 1))
        states = [event["type"].removeprefix("task.") for event in events]
        assert states[0] == "planning"
        moves = list(pairwise(states))
        by_person = [move for move in moves if move[0] in FINAL]
        assert {move for move in moves if move[0] not in FINAL} <= BY_ITSELF, states
        assert len(by_person) <= self.verdicts[task_id], states
        assert sum(move in RERUNS for move in moves) <= task["review_attempts"] <= 2, states
        limit = task["constraints"]["max_cost_usd"]
        assert limit is None or task["cost_incurred_usd"] <= limit + 1e-12
        attempts = task["attempts"]
        has_artifacts = any(attempt["artifact_ids"] for attempt in attempts)
        assert (task["best_artifact_id"] is not None) == has_artifacts
        workflow_ids = [attempt["workflow_id"] for attempt in attempts]
        assert workflow_ids == task["workflow_ids"][: len(attempts)]
        if task["status"] in AT_REST:
            self.check_rest(task)

    def check_rest(self, task: Json) -> None:
        """Check a task that changes only by a person's act."""
        last = self.tasks[task["id"]]
        if task["status"] in FINAL:
            assert last.get("status") not in FINAL or last == task, "an end is final"
            assert len(task["attempts"]) == len(task["workflow_ids"])
        self.tasks[task["id"]] = task
        assert (task["question"] is None) or task["status"] == "blocked"
        if task["status"] == "completed":
            attempt = task["attempts"][task["final_attempt"] - 1]
            assert task["artifact_ids"] == attempt["artifact_ids"]
            assert task["final_artifact_id"] in attempt["artifact_ids"].values()
            assert (task["review"]["decision"], task["error"]) == ("pass", None)
        else:
            assert (task["final_artifact_id"], task["final_attempt"]) == (None, None)
        if task["status"] == "failed":
            assert task["error"]["code"]
        if task["status"] == "blocked":
            assert task["missing"] or task["question"]

    async def end(self) -> None:
        """Wait until all tasks are at rest, and check them."""
        async with asyncio.timeout(PATIENCE_S):
            for task_id in self.tasks:
                after, status = 0, ""
                while status not in AT_REST:
                    path = f"/tasks/{task_id}/events?after={after}&wait=5"
                    items = (await self.read(path))["items"]
                    after = items[-1]["n"] if items else after
                    status = (await self.read(f"/tasks/{task_id}"))["status"]
                await self.check(task_id)
        await self.http.aclose()


TestTaskStates = TaskMachine.TestCase
TestTaskStates.settings = settings(
    max_examples=12,
    stateful_step_count=14,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
