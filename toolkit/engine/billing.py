"""Billing: a month's usage by who bills it."""

from calendar import monthrange
from datetime import date
from decimal import Decimal

from toolkit.contract.base import now
from toolkit.contract.billing import PLATFORM, Billing, BillingLine
from toolkit.contract.usage import UsageLine
from toolkit.engine.core import Core
from toolkit.engine.usage import Usage


class Billings:
    """`/v1/billing`."""

    def __init__(self, core: Core, usage: Usage) -> None:
        self._core = core
        self._usage = usage

    async def get(self, account_id: str, month: date | None = None) -> Billing:
        """What each vendor bills an account for a month; this one, by default.

        Args:
            account_id: whose.
            month: its first day.
        """
        first = (month or now().date()).replace(day=1)
        last = first.replace(day=monthrange(first.year, first.month)[1])
        used = await self._usage.list(account_id, first=first, last=last, groups=["provider"])
        lines = [self._line(line) for line in used if line.provider is not None]
        return Billing(
            month=f"{first:%Y-%m}",
            lines=[*lines, BillingLine(billed_by=PLATFORM, title="This service, self-hosted")],
            total_usd=float(sum((Decimal(str(line.cost_usd)) for line in lines), Decimal(0))),
            simulated=self._core.settings.sandbox,
        )

    def _line(self, used: UsageLine) -> BillingLine:
        provider = used.provider or ""
        vendor = self._core.registry.vendors.get(provider)
        return BillingLine(
            billed_by=provider,
            title=vendor.title if vendor is not None else provider,
            calls=used.calls,
            unpriced_calls=used.unpriced_calls,
            cost_usd=used.cost_usd,
        )
