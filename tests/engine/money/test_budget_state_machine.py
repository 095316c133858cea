"""Budgets in any order of events: concurrent jobs, retries, fallbacks, and processes that die."""

import asyncio
from decimal import Decimal
from typing import Literal

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from tests.support.engine_accounts import connect_account
from tests.support.engine_machine import EngineMachine
from tests.support.timing import PATIENCE_S
from toolkit.contract.errors import RequestError
from toolkit.contract.jobs import Options
from toolkit.contract.workflows import NodeCreate, WorkflowCreate
from toolkit.engine import Engine
from toolkit.engine.job_record import read_wire_job
from toolkit.local import open_engine
from toolkit.sandbox import Fault
from toolkit.settings import Settings

VENDORS = ("minimax", "openai")


class BudgetMachine(EngineMachine):
    """Workflows with budgets, on an engine that spends and a cloud that bills.

    Attributes:
        limits: the budget of each accepted workflow, in dollars.
    """

    engine: Engine

    def __init__(self) -> None:
        super().__init__()
        self.limits: dict[str, Decimal] = {}
        self.line = 0

    async def open(self) -> Engine:
        """Open an engine with short waits."""
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

    async def prepare(self) -> None:
        """Connect two vendors."""
        self.context = await connect_account(self.engine, *VENDORS)

    @rule(
        nodes=st.integers(1, 6),
        retries=st.integers(0, 2),
        calls=st.decimals("0.5", "6", places=1),
        chained=st.booleans(),
    )
    def submit(self, nodes: int, retries: int, calls: Decimal, chained: bool) -> None:
        """Submit a workflow whose budget is enough for about this number of calls."""
        limit = Decimal("0.00019") * calls

        def build_node(i: int) -> NodeCreate:
            self.line += 1
            return NodeCreate(
                id=f"n{i}",
                capability="llm.generate",
                input={"objective": f"Line {self.line}", "max_tokens": 128},
                depends_on=[f"n{i - 1}"] if chained and i else [],
            )

        request = WorkflowCreate(
            name="w",
            max_retries=retries,
            nodes=[build_node(i) for i in range(nodes)],
            options=Options(max_cost_usd=float(limit)),
        )
        try:
            workflow = self.run(self.engine.workflows.create(self.context, request))
        except RequestError:
            return  # rejected before anything was spent
        self.limits[workflow.id] = limit

    @rule(
        vendor=st.sampled_from([*VENDORS, "*"]),
        status=st.sampled_from([429, 500, 503]),
        share=st.sampled_from([0.3, 0.7]),
    )
    def fail_calls(self, vendor: str, status: int, share: float) -> None:
        """Make a share of the next calls fail."""
        self.faults.add(Fault(vendor, status=status, share=share, times=6))

    @rule(how=st.sampled_from(["drop", "truncate"]))
    def lose_answers(self, how: Literal["drop", "truncate"]) -> None:
        """Lose the next answers, although they are billed."""
        self.faults.add(Fault("minimax", mangle=how, times=2))

    @invariant()
    def keeps_every_budget(self) -> None:
        """Check that the cost of each workflow, with its running calls, is within its budget."""
        for workflow_id, limit in self.limits.items():
            assert self.run(self.sum_spent(workflow_id)) <= limit, workflow_id

    async def sum_spent(self, workflow_id: str) -> Decimal:
        """Sum the recorded costs of a workflow and the estimates of its running calls."""
        rows = await self.engine.core.store.find_rows("jobs", workflow_id=workflow_id)
        total = Decimal(0)
        for row in rows:
            job = read_wire_job(row)
            total += Decimal(str(job.cost_incurred_usd))
            if job.attempts and job.attempts[-1].status == "running":
                total += Decimal(str(job.estimated_cost_usd or 0))
        return total

    async def end(self) -> None:
        """Wait until all workflows have ended, and compare their costs with the cloud's bills."""
        self.faults.clear()
        async with asyncio.timeout(PATIENCE_S):
            for workflow_id, limit in self.limits.items():
                assert await self.sum_spent(workflow_id) <= limit
                await self.engine.wait(self.context, workflow_id, 20)
                workflow = await self.engine.workflows.get(self.context, workflow_id)
                assert workflow.status in {"completed", "failed", "cancelled"}
        rows = await self.engine.core.store.find_rows("jobs")
        jobs = [read_wire_job(row) for row in rows]
        paid = sum((attempt.cost_usd or 0) > 0 for job in jobs for attempt in job.attempts)
        billed = sum(call.billed for call in self.faults.calls)
        assert paid >= billed, "the cloud billed a call that no record counts"


TestMoney = BudgetMachine.TestCase
TestMoney.settings = settings(
    max_examples=25,
    stateful_step_count=15,
    suppress_health_check=list(HealthCheck),
)
