"""The specification's state machine of a task, under whatever planner, reviewer and people do.

It speaks HTTP to the service, as any caller does; only the process that dies is looked at from
behind.
"""

import asyncio
import shutil
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.contract.tasks.scripts import GOOD, REFUSED, WORSE, AnswerScript
from tests.support.process_kill import kill_engine
from tests.support.timing import PATIENCE_S, yield_turns
from toolkit.engine import Engine
from toolkit.local import open_engine
from toolkit.sandbox import Faults
from toolkit.server import create_app
from toolkit.settings import Settings

Json = dict[str, Any]
FINAL = frozenset({"completed", "failed"})
AT_REST = FINAL | {"blocked"}
# The manager flow of the specification, and the end that a caller or a budget puts to it.
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


class TaskMachine(RuleBasedStateMachine):
    """Tasks that a caller makes and judges, an engine that dies, and a cloud that is scripted."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp())
        self.faults = Faults(seed=1)
        self.script = AnswerScript(self.faults)
        self.headers: dict[str, str] = {}
        self.tasks: dict[str, Json] = {}  # as they were when they were last at rest
        self.verdicts: dict[str, int] = {}  # by a person, that were taken
        self.speaks = False

    # --- The two sides: a service that can die, and a caller ---

    async def open_engine_again(self) -> None:
        """Open an engine on the same directory, and the door to it."""
        self.engine: Engine = await open_engine(
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
        self.door = httpx.AsyncClient(
            transport=httpx.ASGITransport(create_app(self.engine)), base_url="http://service.test"
        )

    async def send(self, method: str, path: str, body: Json | None = None) -> httpx.Response:
        """Send a request."""
        return await self.door.request(method, f"/v1{path}", json=body, headers=self.headers)

    async def read(self, path: str) -> Any:
        """Read what is at a path."""
        answer = await self.send("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    def run(self, work: Any) -> Any:
        """Carry a coroutine out on this machine's loop."""
        return self.loop.run_until_complete(work)

    @initialize()
    def begin(self) -> None:
        """Open an account that has one language model."""

        async def prepare() -> None:
            await self.open_engine_again()
            made = await self.send("POST", "/account", {"email": "ada@example.org"})
            self.headers = {"Authorization": f"Bearer {made.json()['data']['api_key']}"}
            await self.connect("openai", "OPENAI_API_KEY")

        self.run(prepare())

    async def connect(self, provider: str, variable: str) -> None:
        """Register a connection."""
        pointer = {"connection_type": "environment", "secret_ref": variable, "provider": provider}
        answer = await self.send("POST", "/providers/connections", pointer)
        assert answer.status_code == 201, answer.text

    def pick(self, which: int) -> str:
        """Pick one of the tasks."""
        return sorted(self.tasks)[which % len(self.tasks)]

    # --- What happens ---

    @precondition(lambda self: len(self.tasks) < 3)
    @rule(
        plan=st.sampled_from([*PLANS, "vague"]),
        answers=st.lists(st.sampled_from([*ANSWERS, "away"]), max_size=4),
        limit=st.sampled_from([None, 0.000001, 0.0005, 0.05]),
    )
    def create(self, plan: str, answers: list[str], limit: float | None) -> None:
        """Have a task carried out while a model answers this and that."""
        for answer in answers:
            if answer == "away":
                self.faults.fail("openai", status=503, times=2)
            else:
                self.script.say(ANSWERS[answer])
        body: Json = {"objective": "A text about tea", "constraints": {"max_cost_usd": limit}}
        body |= {"objective": "Something nice, please"} if plan == "vague" else {}
        body |= {"plan": {"nodes": PLANS[plan]}} if plan in PLANS else {}
        made = self.run(self.send("POST", "/tasks", body))
        assert made.status_code == 202, made.text
        assert made.json()["status"] == "planning"
        self.tasks[made.json()["id"]] = {}
        self.verdicts[made.json()["id"]] = 0

    @rule(turns=st.integers(1, 80))
    def work(self, turns: int) -> None:
        """Give the engine so many turns of its loop."""
        self.run(yield_turns(turns))

    @rule()
    def crash(self) -> None:
        """Have the process die, and another one take up what it left."""

        async def again() -> None:
            await kill_engine(self.engine)
            await self.open_engine_again()

        self.run(again())

    @precondition(lambda self: self.tasks)
    @rule(which=st.integers(0, 9))
    def cancel(self, which: int) -> None:
        """Cancel a task, in whatever state it is."""
        task_id = self.pick(which)
        answer = self.run(self.send("POST", f"/tasks/{task_id}/cancel"))
        assert answer.json()["status"] in FINAL

    @precondition(lambda self: self.tasks)
    @rule(which=st.integers(0, 9), answer=st.sampled_from([None, "A paragraph about tea"]))
    def resume(self, which: int, answer: str | None) -> None:
        """Take a task on that may be blocked, with an answer that it may have asked for."""
        task_id = self.pick(which)

        async def take_on() -> None:
            before = await self.read(f"/tasks/{task_id}")
            body = None if answer is None else {"answer": answer}
            got = await self.send("POST", f"/tasks/{task_id}/resume", body)
            if before["status"] == "blocked":
                fits = (before["question"] is None) == (answer is None)
                assert got.status_code == (200 if fits else 400), got.text
            elif before["status"] in FINAL:
                assert got.status_code == 409, got.text

        self.run(take_on())

    @precondition(lambda self: not self.speaks)
    @rule()
    def connect_voice(self) -> None:
        """Register what blocked tasks lack."""
        self.run(self.connect("elevenlabs", "ELEVENLABS_API_KEY"))
        self.speaks = True

    @precondition(lambda self: self.tasks)
    @rule(
        which=st.integers(0, 9),
        decision=st.sampled_from(["pass", "fail", "retry"]),
        attempt=st.sampled_from([None, 1, 2, 3]),
    )
    def judge(self, which: int, decision: str, attempt: int | None) -> None:
        """Have a person judge a task that may have ended."""
        task_id = self.pick(which)

        async def review() -> None:
            before = await self.read(f"/tasks/{task_id}")
            issues = ["Say when."] if decision == "retry" else []
            body = {"decision": decision, "attempt": attempt, "issues": issues}
            got = await self.send("POST", f"/tasks/{task_id}/reviews", body)
            assert got.status_code in {200, 400, 402, 409}, got.text
            if got.status_code != 200:
                return
            assert before["status"] in FINAL
            self.verdicts[task_id] += 1
            self.tasks[task_id] = {}
            after = got.json()["data"]
            if decision == "pass":
                assert (after["status"], after["error"]) == ("completed", None)
                assert attempt in {None, after["final_attempt"]}
            elif decision == "fail":
                assert (after["status"], after["final_artifact_id"]) == ("failed", None)
            assert after["reviews"][len(before["reviews"])]["score"] is None

        self.run(review())

    # --- What always holds ---

    @invariant()
    def the_specification_holds(self) -> None:
        """Check every task as it stands, and the way that it came."""
        if hasattr(self, "engine"):
            for task_id in self.tasks:
                self.run(self.check(task_id))

    async def check(self, task_id: str) -> None:
        """Check one task."""
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
        made = any(one["artifact_ids"] for one in task["attempts"])
        assert (task["best_artifact_id"] is not None) == made
        assert [one["workflow_id"] for one in task["attempts"]] == task["workflow_ids"][
            : len(task["attempts"])
        ]
        if task["status"] in AT_REST:
            self.check_rest(task)

    def check_rest(self, task: Json) -> None:
        """Check a task that only a person moves on."""
        known = self.tasks[task["id"]]
        if task["status"] in FINAL:
            assert known.get("status") not in FINAL or known == task, "an end is final"
            assert len(task["attempts"]) == len(task["workflow_ids"])
        self.tasks[task["id"]] = task
        assert (task["question"] is None) or task["status"] == "blocked"
        if task["status"] == "completed":
            chosen = task["attempts"][task["final_attempt"] - 1]
            assert task["artifact_ids"] == chosen["artifact_ids"]
            assert task["final_artifact_id"] in chosen["artifact_ids"].values()
            assert (task["review"]["decision"], task["error"]) == ("pass", None)
        else:
            assert (task["final_artifact_id"], task["final_attempt"]) == (None, None)
        if task["status"] == "failed":
            assert task["error"]["code"]
        if task["status"] == "blocked":
            assert task["missing"] or task["question"]

    def teardown(self) -> None:
        """Let all tasks come to rest, and check them as they are then."""

        async def end() -> None:
            async with asyncio.timeout(PATIENCE_S):
                for task_id in self.tasks:
                    after, status = 0, ""
                    while status not in AT_REST:
                        path = f"/tasks/{task_id}/events?after={after}&wait=5"
                        items = (await self.read(path))["items"]
                        after = items[-1]["n"] if items else after
                        status = (await self.read(f"/tasks/{task_id}"))["status"]
                    await self.check(task_id)
            await self.door.aclose()
            await self.engine.close(0)

        try:
            if hasattr(self, "engine"):
                self.run(end())
        finally:
            self.loop.close()
            shutil.rmtree(self.folder, ignore_errors=True)


TestTaskStates = TaskMachine.TestCase
TestTaskStates.settings = settings(
    max_examples=12,
    stateful_step_count=14,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
