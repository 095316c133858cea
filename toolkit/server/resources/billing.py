"""`/v1/billing`."""

from fastapi import APIRouter, Request, Response

from toolkit.contract.billing import BILLING_GROUPS, MONTH_PATTERN, Billing
from toolkit.server.auth import ReadCaller, ServedEngine
from toolkit.server.http.envelope import render_resource
from toolkit.server.http.query import parse_billing_query
from toolkit.server.openapi.document import QueryParam, describe_route

router = APIRouter(prefix="/v1/billing", tags=["billing"])
BILLING_PARAMS = (
    QueryParam(
        "month",
        "as 2026-11, by UTC; the present one by default",
        {"type": "string", "pattern": MONTH_PATTERN},
    ),
    QueryParam(
        "group_by",
        "tell lines apart by key, or by whose work was done by your own connections",
        {"type": "string", "enum": list(BILLING_GROUPS)},
    ),
)


@router.get("", **describe_route("billing_read", Billing, query=BILLING_PARAMS))
async def read(request: Request, engine: ServedEngine, caller: ReadCaller) -> Response:
    """Tell what each vendor bills for a month; the platform's own line is 0 here."""
    month, by = parse_billing_query(request)
    return render_resource(await engine.billing.get(caller, month, by=by))
