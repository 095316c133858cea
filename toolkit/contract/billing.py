"""Billing: the bills of each vendor to its account holder, and of the platform."""

from typing import Annotated, Literal, get_args

from pydantic import Field

from toolkit.contract.base import Record, Usd

PLATFORM = "platform"
MONTH_PATTERN = r"^20[0-9]{2}-(0[1-9]|1[0-2])$"
BillingGroup = Literal["key", "account"]
BILLING_GROUPS: tuple[BillingGroup, ...] = get_args(BillingGroup)
Month = Annotated[str, Field(pattern=MONTH_PATTERN, examples=["2026-11"])]


class BillingLine(Record):
    """The bill of one party.

    Attributes:
        billed_by: vendor that bills you directly, or `platform`, which bills nothing if you host it
            yourself.
        key_id: key that the work was asked for with, if lines are grouped by key.
        account_id: account whose work used the caller's own connections, if lines are grouped by
            account.
        calls: number of the vendor's calls; `unpriced_calls` of them have an unknown price.
        pod_hours: hours that GPU pods were kept; `unpriced_pod_hours` have an unknown price.
        cost_usd: cost by the vendor's reports, or by its list prices; volumes are not included.
    """

    billed_by: str
    title: str
    key_id: str | None = None
    account_id: str | None = None
    calls: int = 0
    unpriced_calls: int = 0
    pod_hours: float = 0.0
    unpriced_pod_hours: float = 0.0
    cost_usd: Usd = 0.0


class Billing(Record):
    """`GET /v1/billing`: a month, by UTC, as this service saw it; the vendors' own bills prevail.

    Attributes:
        simulated: whether the sandbox made the calls, so that nobody bills anything.
    """

    month: Month
    currency: Literal["USD"] = "USD"
    lines: list[BillingLine]
    total_usd: Usd
    simulated: bool = False
