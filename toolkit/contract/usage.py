"""Usage: what was done on which day, by whom, and what it cost."""

from datetime import date
from typing import get_args

from pydantic import Field

from toolkit.contract.base import Record, Usd
from toolkit.contract.choices import UsageGroup

USAGE_GROUPS: tuple[UsageGroup, ...] = get_args(UsageGroup)
DEFAULT_GROUPS: tuple[UsageGroup, ...] = ("day", "capability", "provider")


class UsageLine(Record):
    """The features that a line's work has in common; what was not grouped by is none.

    Attributes:
        account_id: whose work it was that was done by one of the caller's own connections.
        jobs: that ended, of which so many `failed` (or were cancelled) and so many were `cached`.
        calls: of vendors, those that failed among them.
        unpriced_calls: whose price is not known, and which `cost_usd` is therefore without.
        cost_usd: of all calls, in simulated dollars where the sandbox made them.
        latency_ms: of all jobs together; divide it by `jobs` for the mean.
    """

    day: date | None = None
    capability: str | None = None
    provider: str | None = None
    connection_id: str | None = None
    agent_id: str | None = None
    key_id: str | None = None
    account_id: str | None = None
    jobs: int = 0
    failed: int = 0
    cached: int = 0
    calls: int = 0
    unpriced_calls: int = 0
    cost_usd: Usd = 0.0
    latency_ms: int = Field(default=0, ge=0)
