"""Budgets under any interleaving: jobs at once, retries, fallbacks, and a process that dies."""

import asyncio
import shutil
import tempfile
from decimal import Decimal
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.support.process_kill import kill_engine
from tests.support.timing import PATIENCE_S, yield_turns
from toolkit.contract.connections import ConnectionCreate
from toolkit.contract.errors import RequestError
from toolkit.contract.jobs import Job, Options
from toolkit.contract.workflows import NodeCreate, WorkflowCreate
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext
from toolkit.local import open_engine
from toolkit.sandbox import SANDBOX_KEYS, Fault, Faults
from toolkit.settings import Settings

VENDORS = {"minimax": "MINIMAX_API_KEY", "openai": "OPENAI_API_KEY"}
FINAL = {"completed", "failed", "cancelled"}


class BudgetMachine(RuleBasedStateMachine):
    """A model of what was allowed, beside an engine that spends, and a cloud that bills."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp())
        self.faults = Faults(seed=1)
        self.limits: dict[str, Decimal] = {}
        self.asked = 0

    def run(self, work: object) -> object:
        """Carry a coroutine out on this machine's loop."""
        return self.loop.run_until_complete(work)  # type: ignore[arg-type]

    async def open_engine_again(self) -> Engine:
        """An engine on the same directory, with nothing that takes long."""
        return await open_engine(
            Settings(
                data_dir=self.folder,
                sandbox=True,
                retry_base_s=0.001,
                breaker_cooldown_s=0.01,
                max_cooldown_wait_s=0.2,
                max_concurrent_calls=3,
            ),
            faults=self.faults,
        )

    @initialize()
    def begin(self) -> None:
        """An account with two vendors."""

        async def prepare() -> None:
            self.engine = await self.open_engine_again()
            account, _ = await self.engine.accounts.open_local_account()
            self.context = RequestContext(account.id)
            for provider, variable in VENDORS.items():
                assert variable in SANDBOX_KEYS
                pointer = ConnectionCreate(
                    provider=provider, connection_type="environment", secret_ref=variable
                )
                await self.engine.connections.create(self.context, pointer)

        self.run(prepare())

    @rule(
        nodes=st.integers(1, 6),
        retries=st.integers(0, 2),
        calls=st.decimals("0.5", "6", places=1),
        chained=st.booleans(),
    )
    def submit(self, nodes: int, retries: int, calls: Decimal, chained: bool) -> None:
        """A workflow whose budget is enough for about so many calls."""
        limit = Decimal("0.00019") * calls

        def node(i: int) -> NodeCreate:
            self.asked += 1
            return NodeCreate(
                id=f"n{i}",
                capability="llm.generate",
                input={"objective": f"Line {self.asked}", "max_tokens": 128},
                depends_on=[f"n{i - 1}"] if chained and i else [],
            )

        async def create() -> None:
            request = WorkflowCreate(
                name="w",
                max_retries=retries,
                nodes=[node(i) for i in range(nodes)],
                options=Options(max_cost_usd=float(limit)),
            )
            try:
                made = await self.engine.workflows.create(self.context, request)
            except RequestError:
                return  # refused before anything was spent
            self.limits[made.id] = limit

        self.run(create())

    @rule(
        vendor=st.sampled_from([*VENDORS, "*"]),
        status=st.sampled_from([429, 500, 503]),
        share=st.sampled_from([0.3, 0.7]),
    )
    def weather(self, vendor: str, status: int, share: float) -> None:
        """Some calls fail from now on."""
        self.faults.add(Fault(vendor, status=status, share=share, times=6))

    @rule(how=st.sampled_from(["drop", "truncate"]))
    def unclear(self, how: str) -> None:
        """The next answers are lost, though they are billed."""
        self.faults.add(Fault("minimax", mangle=how, times=2))  # type: ignore[arg-type]

    @rule(turns=st.integers(1, 60))
    def work(self, turns: int) -> None:
        """The engine has so many turns of its loop."""
        self.run(yield_turns(turns))

    @rule()
    def crash(self) -> None:
        """The process dies, and another one takes up what it left."""

        async def again() -> None:
            await kill_engine(self.engine)
            self.engine = await self.open_engine_again()

        self.run(again())

    @invariant()
    def nothing_is_over_its_budget(self) -> None:
        """Check that what is spent, and what calls under way may cost, stays below each budget."""
        if not self.limits:
            return
        for workflow_id, limit in self.limits.items():
            assert self.run(self.sum_spent(workflow_id)) <= limit, workflow_id

    async def sum_spent(self, workflow_id: str) -> Decimal:
        """Sum what was spent or is reserved, by the records."""
        rows = await self.engine.core.store.find_rows("jobs", workflow_id=workflow_id)
        total = Decimal(0)
        for row in rows:
            job = Job.model_validate_json(str(row["doc"]))
            total += Decimal(str(job.cost_incurred_usd))
            if job.attempts and job.attempts[-1].status == "running":
                total += Decimal(str(job.estimated_cost_usd or 0))
        return total

    def teardown(self) -> None:
        """Let all of it end, and compare with what the cloud has billed."""
        self.faults.clear()

        async def end() -> tuple[int, int]:
            async with asyncio.timeout(PATIENCE_S):
                for workflow_id in self.limits:
                    await self.engine.wait(self.context, workflow_id, 20)
                    ended = await self.engine.workflows.get(self.context, workflow_id)
                    assert ended.status in FINAL
            rows = await self.engine.core.store.find_rows("jobs")
            jobs = [Job.model_validate_json(str(row["doc"])) for row in rows]
            paid = sum((a.cost_usd or 0) > 0 for job in jobs for a in job.attempts)
            await self.engine.close(0)
            return paid, sum(call.billed for call in self.faults.calls)

        try:
            if hasattr(self, "engine"):
                self.nothing_is_over_its_budget()
                paid, billed = self.run(end())  # type: ignore[misc]
                assert paid >= billed, "the cloud billed a call that no record counts"
        finally:
            self.loop.close()
            shutil.rmtree(self.folder, ignore_errors=True)


TestMoney = BudgetMachine.TestCase
TestMoney.settings = settings(
    max_examples=25,
    stateful_step_count=15,
    suppress_health_check=list(HealthCheck),
)
