"""Usage: the work of each day, by whom, and its cost."""

from datetime import date
from typing import get_args

from pydantic import Field

from toolkit.contract.base import Record, Usd
from toolkit.contract.choices import UsageGroup

USAGE_GROUPS: tuple[UsageGroup, ...] = get_args(UsageGroup)
DEFAULT_GROUPS: tuple[UsageGroup, ...] = ("day", "capability", "provider")


class UsageLine(Record):
    """The common features of a line's work; a feature that lines are not grouped by is null.

    Attributes:
        account_id: account whose work used one of the caller's own connections.
        jobs: number of ended jobs; `failed` (or cancelled) and `cached` are parts of it.
        calls: number of vendor calls, with failed calls.
        unpriced_calls: number of calls with an unknown price, which `cost_usd` leaves out.
        cost_usd: cost of all calls, in US dollars; simulated dollars for calls in the sandbox.
        latency_ms: total of all jobs, in milliseconds; divide it by `jobs` for the mean.
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
