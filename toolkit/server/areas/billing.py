"""`/v1/billing`."""

from fastapi import APIRouter, Request, Response

from toolkit.contract.billing import BILLING_GROUPS, MONTH_PATTERN, Billing
from toolkit.server.auth import Reader, TheEngine
from toolkit.server.envelope import one
from toolkit.server.openapi import Query, described
from toolkit.server.paging import billing_query

router = APIRouter(prefix="/v1/billing", tags=["billing"])
MONTH = (
    Query(
        "month",
        "as 2026-11, by UTC; the present one by default",
        {"type": "string", "pattern": MONTH_PATTERN},
    ),
    Query(
        "group_by",
        "tell lines apart by key, or by whose work was done by your own connections",
        {"type": "string", "enum": list(BILLING_GROUPS)},
    ),
)


@router.get("", **described("billing_read", Billing, query=MONTH))
async def read(request: Request, engine: TheEngine, caller: Reader) -> Response:
    """Tell what each vendor bills for a month; the platform's own line is 0 here."""
    month, by = billing_query(request)
    return one(await engine.billing.get(caller.account_id, month, by=by))
