"""Query parameters: pages and waits are parsed, unknown parameters are refused."""

import base64
import binascii
import re
from dataclasses import dataclass
from datetime import date

from fastapi import Request

from toolkit.contract.billing import BILLING_GROUPS, MONTH_PATTERN, BillingGroup
from toolkit.contract.choices import UsageGroup
from toolkit.contract.errors import Detail, ErrorCode, RequestError, build_not_found
from toolkit.contract.ids import Prefix, is_id
from toolkit.contract.usage import DEFAULT_GROUPS, USAGE_GROUPS

DEFAULT_LIMIT, MAX_LIMIT = 50, 200
MAX_POLL_S, MAX_WAIT_S = 30, 60
MAX_EVENT_NUMBER = 2**53
MAX_DIGITS = 16  # of a number that is parsed at all
# A preference, its value and its parameters: a comma in quotes does not end it.
_PREFERENCE = re.compile(
    r"""(?:^|,)\s*(?P<name>[^\s,;="]+)\s*(?:=\s*(?P<value>"[^"]*"|[^\s,;"]*))?"""
    r"""(?:"[^"]*"|[^,"])*+"""
)
# The kind of the ids below a path; capabilities have names instead.
ID_PREFIXES = {
    "/v1/account/keys": Prefix.KEY,
    "/v1/agents": Prefix.AGENT,
    "/v1/artifacts": Prefix.ARTIFACT,
    "/v1/compute": Prefix.COMPUTE,
    "/v1/endpoints": Prefix.ENDPOINT,
    "/v1/jobs": Prefix.JOB,
    "/v1/plans": Prefix.PLAN,
    "/v1/providers/connections": Prefix.CONNECTION,
    "/v1/runs": Prefix.RUN,
    "/v1/storage": Prefix.STORAGE,
    "/v1/tasks": Prefix.TASK,
    "/v1/templates": Prefix.TEMPLATE,
    "/v1/workflows": Prefix.WORKFLOW,
}


def find_id_prefix(path: str) -> Prefix | None:
    """Find the kind of the ids below a path, or at the placeholder in it; none if unknown.

    >>> str(find_id_prefix("/v1/runs/{id}/cancel"))
    'run'
    """
    return ID_PREFIXES.get(path.partition("/{")[0])


@dataclass(frozen=True, slots=True)
class PageQuery:
    """The page of a list that is asked for: `limit` items from below the id `before`."""

    limit: int
    before: str | None


def parse_page_query(request: Request) -> PageQuery:
    """Parse `limit` (1 to 200) and `cursor` (opaque) of a list.

    Raises:
        RequestError: `INVALID_REQUEST`.
    """
    given = read_query(request, "limit", "cursor")
    limit = _parse_whole_number(given, "limit", DEFAULT_LIMIT, 1, MAX_LIMIT)
    cursor = given.get("cursor")
    if cursor is None:
        return PageQuery(limit, None)
    try:
        before = base64.urlsafe_b64decode(cursor.encode("ascii")).decode("ascii")
    except (ValueError, binascii.Error):
        before = ""
    if not is_id(before, find_id_prefix(request.scope["path"])):
        raise _make_query_error("cursor", "is not a cursor that a list gave")
    return PageQuery(limit, before)


def make_cursor(last_id: str) -> str:
    """Make the cursor of the page that starts below an id."""
    return base64.urlsafe_b64encode(last_id.encode("ascii")).decode("ascii")


def parse_events_query(request: Request, longest_s: int) -> tuple[int, float]:
    """Parse `after` and `wait` of a list of events.

    Raises:
        RequestError: `INVALID_REQUEST`.
    """
    given = read_query(request, "after", "wait")
    after = _parse_whole_number(given, "after", 0, 0, MAX_EVENT_NUMBER)
    return after, float(_parse_whole_number(given, "wait", 0, 0, longest_s))


def parse_usage_query(
    request: Request,
) -> tuple[date | None, date | None, tuple[UsageGroup, ...]]:
    """Parse `from`, `to` and `group_by` of a usage summary.

    Raises:
        RequestError: `INVALID_REQUEST`.
    """
    given = read_query(request, "from", "to", "group_by")
    wanted = given.get("group_by", ",".join(DEFAULT_GROUPS)).split(",")
    groups = tuple(group for group in USAGE_GROUPS if group in wanted)
    if len(groups) != len(wanted):
        raise _make_query_error(
            "group_by", f"names other than {', '.join(USAGE_GROUPS)}, or one twice"
        )
    return _parse_day(given, "from"), _parse_day(given, "to"), groups


def parse_billing_query(request: Request) -> tuple[date | None, BillingGroup | None]:
    """Parse `month`, as its first day, and `group_by` of a bill.

    Raises:
        RequestError: `INVALID_REQUEST`.
    """
    given = read_query(request, "month", "group_by")
    asked, month = given.get("group_by"), given.get("month")
    by = next((group for group in BILLING_GROUPS if group == asked), None)
    if by is None and asked is not None:
        raise _make_query_error("group_by", f"is not {' or '.join(BILLING_GROUPS)}")
    if month is None:
        return None, by
    if not re.fullmatch(MONTH_PATTERN.strip("^$"), month):
        raise _make_query_error("month", "is not a month from 2000-01 to 2099-12, such as 2026-11")
    return date.fromisoformat(f"{month}-01"), by


def _parse_day(given: dict[str, str], name: str) -> date | None:
    text = given.get(name)
    if text is None:
        return None
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.A):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise _make_query_error(name, "is not a day such as 2026-11-20")


def parse_preferred_wait(request: Request, longest_s: int) -> int | None:
    """Parse the N of `Prefer: wait=N`, at most `longest_s` seconds; none where not asked for.

    A wait that is no number of seconds counts as none: a preference that cannot be met is to be
    ignored, not refused (RFC 7240, 2), and the answer's `Preference-Applied` tells what was done.
    Of several the first counts; preferences other than `wait` are ignored.
    """
    for preference in _PREFERENCE.finditer(", ".join(request.headers.getlist("prefer"))):
        if preference["name"].lower() == "wait":
            value = (preference["value"] or "").strip('"')
            if not re.fullmatch(r"\d+", value, re.A):
                return None
            return min(int(value), longest_s) if len(value) <= MAX_DIGITS else longest_s
    return None


def read_query(request: Request, *names: str) -> dict[str, str]:
    """Read the query parameters, refusing any that is unknown or given twice.

    Raises:
        RequestError: `INVALID_REQUEST`.
    """
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in names:
            raise _make_query_error(name[:64], "is not a parameter of this path")
        if name in given:
            raise _make_query_error(name, "is given twice")
        given[name] = value
    return given


async def reject_query(request: Request) -> None:
    """Refuse any query parameter: a dependency for paths that take none.

    A coroutine, as FastAPI runs any other dependency in a thread.
    """
    read_query(request)


def _parse_whole_number(given: dict[str, str], name: str, default: int, low: int, high: int) -> int:
    text = given.get(name)
    if text is None:
        return default
    if not re.fullmatch(r"\d{1,16}", text, re.A) or not low <= int(text) <= high:
        raise _make_query_error(name, f"is not a whole number from {low} to {high}")
    return int(text)


def _make_query_error(name: str, why: str) -> RequestError:
    return RequestError(
        ErrorCode.INVALID_REQUEST, "A query parameter is wrong.", details=[Detail(name, why)]
    )


def check_id_kind(resource_id: str, prefix: Prefix) -> None:
    """Refuse the id of another kind of resource: below this path it is not there.

    Raises:
        RequestError: `NOT_FOUND`.
    """
    if not is_id(resource_id, prefix):
        raise build_not_found("resource", resource_id)
