"""Usage: counted in the transactions that record jobs, totalled on request."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP

from toolkit.contract.base import format_rfc3339, now
from toolkit.contract.choices import UsageGroup
from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.money import to_wire_usd
from toolkit.contract.usage import DEFAULT_GROUPS, UsageLine
from toolkit.engine.context import EngineContext
from toolkit.engine.job_record import AttemptRecord, JobRecord
from toolkit.engine.money.amounts import from_nano_usd, to_nano_usd
from toolkit.engine.request_context import RequestContext
from toolkit.store import IncrementColumns, Lease

DEFAULT_DAYS = 30
MAX_PERIOD = timedelta(days=366)
# The column of each group, and the columns that are totalled.
_COLUMNS: dict[UsageGroup, str] = {
    "day": "day",
    "capability": "capability",
    "provider": "provider",
    "connection": "connection_id",
    "agent": "agent_id",
    "key": "key_id",
    "account": "account_id",
}
# Groups that may be combined with `account`: agents and keys are private to their account.
_SHARED_GROUPS = frozenset[UsageGroup]({"day", "capability", "provider", "connection", "account"})
_SUM_COLUMNS = ("jobs", "failed", "cached", "calls", "unpriced", "nano", "latency_ms")


class Usage:
    """The operation of `/v1/usage`."""

    def __init__(self, core: EngineContext) -> None:
        self._core = core

    async def list(
        self,
        context: RequestContext,
        *,
        first: date | None = None,
        last: date | None = None,
        groups: Sequence[UsageGroup] = DEFAULT_GROUPS,
    ) -> list[UsageLine]:
        """List an account's usage, totalled by the requested groups, the newest day first.

        Args:
            first, last: first and last day of the period, by UTC; the last 30 days by default.
            groups: groups of the totals. With `account`, the totals cover all work through the
                account's own connections, by any account, instead of the account's requests.

        Raises:
            RequestError: `INVALID_REQUEST` for more than a year, for days in the wrong order, or
                for accounts together with agents or keys.
        """
        through = "account" in groups
        if through and not _SHARED_GROUPS.issuperset(groups):
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                "Usage by account cannot be grouped by agent or key.",
                details=[Detail("group_by", "combines account with agent or key")],
            )
        last = last or now().date()
        # Dates begin with the year 1: an earlier date cannot be represented.
        first = first or date.fromordinal(max(1, last.toordinal() - DEFAULT_DAYS + 1))
        if not timedelta(0) <= last - first < MAX_PERIOD:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                "Ask for at most 366 days, the earlier day first.",
                details=[Detail("from", "is after `to`, or more than 366 days before it")],
            )
        columns = [_COLUMNS[group] for group in groups]
        days = (first.isoformat(), last.isoformat())
        rows = await self._core.store.sum_rows(
            "usage", _SUM_COLUMNS, columns, context.scope, "day", days, through=through
        )
        return [
            UsageLine(
                **{name: row["spender_id" if name == "account_id" else name] for name in columns},
                **{name: row[name] for name in ("jobs", "failed", "cached", "calls", "latency_ms")},
                unpriced_calls=row["unpriced"],
                cost_usd=to_wire_usd(from_nano_usd(row["nano"])),
            )
            for row in rows
        ]


def make_usage_count(
    job: JobRecord,
    lease: Lease,
    provider: str | None,
    connection_id: str | None,
    counts: dict[str, int],
    at: datetime,
) -> IncrementColumns:
    """Make the change that adds counts of a job to its account's usage of a day.

    Usage is counted by day, capability, provider, connection, agent and key.
    """
    day = format_rfc3339(at)[:10]
    account_id, agent_id, capability = lease.account_id, lease.agent_id, job.capability
    values: dict[str, object] = {
        "id": f"{account_id}|{day}|{capability}|{provider or ''}|{connection_id or ''}"
        f"|{agent_id or ''}|{lease.key_id or ''}",
        "account_id": account_id,
        "day": day,
        "capability": capability,
        "provider": provider,
        "connection_id": connection_id,
        "agent_id": agent_id,
        "key_id": lease.key_id,
    }
    return IncrementColumns("usage", values, counts)


def count_call(attempt: AttemptRecord) -> dict[str, int]:
    """Return the usage counts of a finished call: one call, and its cost or its lack of a price."""
    if attempt.cost_usd is None:
        return {"calls": 1, "unpriced": 1}
    return {"calls": 1, "nano": to_nano_usd(attempt.cost_usd, ROUND_HALF_UP)}


def count_outcome(job: JobRecord) -> dict[str, int]:
    """Return the usage counts of a finished job, without those of its calls."""
    return {
        "jobs": 1,
        "failed": int(job.status != "completed"),
        "cached": int(job.cached),
        "latency_ms": job.latency_ms or 0,
    }
