"""`/v1/usage`."""

from fastapi import APIRouter, Request, Response

from toolkit.contract.usage import DEFAULT_GROUPS, USAGE_GROUPS, UsageLine
from toolkit.server.auth import ReadCaller, ServedEngine
from toolkit.server.http.envelope import render_page
from toolkit.server.http.query import parse_usage_query
from toolkit.server.openapi.document import QueryParam, describe_route

router = APIRouter(prefix="/v1/usage", tags=["usage"])
GROUP_BY_PATTERN = "^({0})(,({0}))*$".format("|".join(USAGE_GROUPS))
DAY_SCHEMA = {"type": "string", "format": "date"}
USAGE_PARAMS = (
    QueryParam("from", "the first day, by UTC; 30 days up to `to` by default", DAY_SCHEMA),
    QueryParam("to", "the last day; today by default", DAY_SCHEMA),
    QueryParam(
        "group_by",
        "of day, capability, provider (the default), connection, agent and key, by commas; with"
        " account, of all that was done by your own connections: by whom",
        {"type": "string", "pattern": GROUP_BY_PATTERN, "default": ",".join(DEFAULT_GROUPS)},
    ),
)


@router.get("", **describe_route("usage_list", UsageLine, listed=True, query=USAGE_PARAMS))
async def list_lines(request: Request, engine: ServedEngine, caller: ReadCaller) -> Response:
    """Sum up what was used, by day, capability, provider, connection, agent, key or account."""
    first, last, groups = parse_usage_query(request)
    lines = await engine.usage.list(caller, first=first, last=last, groups=groups)
    return await render_page(lines)
