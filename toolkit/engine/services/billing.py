"""Billing: a month's calls and pods, grouped by the vendor that bills them."""

import json
from calendar import monthrange
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TypeAlias

from toolkit.contract.base import now
from toolkit.contract.billing import PLATFORM, Billing, BillingGroup, BillingLine
from toolkit.contract.choices import UsageGroup
from toolkit.contract.money import from_wire_usd, sum_usd, to_wire_usd
from toolkit.engine.context import EngineContext
from toolkit.engine.request_context import RequestContext
from toolkit.engine.services.usage import Usage
from toolkit.store import ReadScope

HOUR = timedelta(hours=1)
# Key: the vendor that bills, and the key or the account if lines are split by them.
BillingLines: TypeAlias = dict[tuple[str, str | None], BillingLine]


class Billings:
    """The operation of `/v1/billing`."""

    def __init__(self, core: EngineContext, usage: Usage) -> None:
        self._core = core
        self._usage = usage

    async def get(
        self, context: RequestContext, month: date | None = None, *, by: BillingGroup | None = None
    ) -> Billing:
        """Return the amounts that each vendor bills an account for a month, by default this month.

        Args:
            by: split the lines by the account's keys; or by the account that requested the work,
                for all work through the account's own connections.
        """
        first = (month or now().date()).replace(day=1)
        last = first.replace(day=monthrange(first.year, first.month)[1])
        lines = {
            (line.billed_by, line.key_id or line.account_id): line
            for line in [
                *await self._list_call_lines(context, first, last, by),
                BillingLine(billed_by=PLATFORM, title="This service, self-hosted"),
            ]
        }
        await self._add_pods(context.scope, first, last, lines, by)
        return Billing(
            month=f"{first:%Y-%m}",
            lines=sorted(lines.values(), key=_sort_key),
            total_usd=sum_usd(line.cost_usd for line in lines.values()),
            simulated=self._core.settings.sandbox,
        )

    async def _list_call_lines(
        self, context: RequestContext, first: date, last: date, by: BillingGroup | None
    ) -> list[BillingLine]:
        groups: list[UsageGroup] = ["provider"] if by is None else ["provider", by]
        usage = await self._usage.list(context, first=first, last=last, groups=groups)
        return [
            BillingLine(
                billed_by=line.provider,
                title=self._get_title(line.provider),
                key_id=line.key_id,
                account_id=line.account_id,
                calls=line.calls,
                unpriced_calls=line.unpriced_calls,
                cost_usd=line.cost_usd,
            )
            for line in usage
            if line.provider is not None
        ]

    async def _add_pods(
        self,
        scope: ReadScope,
        first: date,
        last: date,
        lines: BillingLines,
        by: BillingGroup | None,
    ) -> None:
        """Add the hours of pods that existed in those days: they are billed even while idle."""
        begins = datetime.combine(first, time(), UTC)
        ends = min(now(), datetime.combine(last, time(), UTC) + timedelta(days=1))
        for row in await self._core.store.find_owned_rows("compute", scope):
            if row["vendor_id"] is None:
                continue  # it was never created
            pod = self._core.records.compute.read(row)
            duration = min(ends, pod.deleted_at or ends) - max(begins, pod.created_at)
            if duration <= timedelta(0):
                continue
            group_id = json.loads(row["spec"]).get("key_id") if by == "key" else None
            if by == "account":
                group_id = str(row["account_id"])  # a shared connection rents nothing
            line = await self._find_line(str(row["connection_id"]), group_id, lines, by)
            line.pod_hours += duration / HOUR
            if pod.cost_per_hour_usd is None:
                line.unpriced_pod_hours += duration / HOUR
            else:
                cost = from_wire_usd(pod.cost_per_hour_usd) * _count_hours(duration)
                line.cost_usd = to_wire_usd(from_wire_usd(line.cost_usd) + cost)

    async def _find_line(
        self, connection_id: str, group_id: str | None, lines: BillingLines, by: BillingGroup | None
    ) -> BillingLine:
        """Return the line of a connection's vendor, adding it if it is missing."""
        row = await self._core.store.get_row("connections", connection_id, "provider")
        provider = str(row["provider"]) if row else "?"
        ids = {} if by is None else {f"{by}_id": group_id}
        return lines.setdefault(
            (provider, group_id),
            BillingLine(billed_by=provider, title=self._get_title(provider), **ids),
        )

    def _get_title(self, provider: str) -> str:
        vendor = self._core.registry.vendors.get(provider)
        return vendor.title if vendor is not None else provider


def _count_hours(period: timedelta) -> Decimal:
    """Count the hours of a period, exactly."""
    return Decimal(period // timedelta.resolution) / (HOUR // timedelta.resolution)


def _sort_key(line: BillingLine) -> tuple[bool, str, str]:
    return line.billed_by == PLATFORM, line.title, line.key_id or line.account_id or ""
