"""`/v1/usage`."""

from fastapi import APIRouter, Request, Response

from toolkit.contract.usage import DEFAULT_GROUPS, USAGE_GROUPS, UsageLine
from toolkit.server.auth import Reader, TheEngine
from toolkit.server.envelope import page
from toolkit.server.openapi import Query, described
from toolkit.server.paging import usage_query

router = APIRouter(prefix="/v1/usage", tags=["usage"])
GROUPED = "^({0})(,({0}))*$".format("|".join(USAGE_GROUPS))
DAY = {"type": "string", "format": "date"}
SPANNED = (
    Query("from", "the first day, by UTC; 30 days up to `to` by default", DAY),
    Query("to", "the last day; today by default", DAY),
    Query(
        "group_by",
        "of day, capability, provider (the default), connection, agent and key, by commas; with"
        " account, of all that was done by your own connections: by whom",
        {"type": "string", "pattern": GROUPED, "default": ",".join(DEFAULT_GROUPS)},
    ),
)


@router.get("", **described("usage_list", UsageLine, listed=True, query=SPANNED))
async def list_lines(request: Request, engine: TheEngine, caller: Reader) -> Response:
    """Sum up what was used, by day, capability, provider, connection, agent, key or account."""
    first, last, groups = usage_query(request)
    lines = await engine.usage.list(caller.account_id, first=first, last=last, groups=groups)
    return await page(lines)
