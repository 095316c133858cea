"""Agents and usage: named bundles of an objective, and what work has cost."""

from pydantic import Field

from toolkit.contract.base import Record, Request, Timestamp, Usd
from toolkit.contract.plans import Constraints


class AgentCreate(Request):
    """`POST /v1/agents`: an objective template with what it may use."""

    name: str = Field(min_length=1, max_length=128)
    version: str = Field(default="1", min_length=1, max_length=32)
    objective: str = Field(min_length=1, max_length=10_000)
    constraints: Constraints = Constraints()
    capabilities: list[str] = []


class Agent(Record):
    """A registered agent."""

    id: str
    name: str
    version: str
    objective: str
    constraints: Constraints = Constraints()
    capabilities: list[str] = []
    created_at: Timestamp


class UsageLine(Record):
    """Usage of one day, capability and provider."""

    day: str
    capability: str
    provider: str | None
    jobs: int
    cost_usd: Usd | None
    latency_ms: int
