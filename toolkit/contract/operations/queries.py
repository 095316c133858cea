"""The queries that operations take: the parameters of each, and how their text is parsed."""

import base64
import binascii
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import ClassVar, Self

from toolkit.contract.base import JsonObject
from toolkit.contract.billing import BILLING_GROUPS, MONTH_PATTERN, BillingGroup
from toolkit.contract.choices import UsageGroup
from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.ids import Prefix, is_id
from toolkit.contract.suggestions import ask_meant
from toolkit.contract.usage import DEFAULT_GROUPS, USAGE_GROUPS

DEFAULT_LIMIT, MAX_LIMIT = 50, 200
MAX_TOTAL = 10_000  # a greater number of records is not counted
MAX_POLL_S = 30
MAX_EVENT_NUMBER = 2**53
_DAY_SCHEMA: JsonObject = {"type": "string", "format": "date"}


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """A query parameter: its name, its purpose, and the schema of its values."""

    name: str
    text: str
    schema: JsonObject = field(default_factory=lambda: {"type": "string"})


class OperationQuery(ABC):
    """The base of the queries of operations: the parameters of a query, and how to parse them."""

    PARAMETERS: ClassVar[tuple[QueryParameter, ...]]

    @classmethod
    @abstractmethod
    def parse(cls, params: Mapping[str, str], prefix: Prefix | None) -> Self:
        """Parse the parameters, all of which are among `PARAMETERS`; missing ones have defaults.

        Args:
            params: texts of the parameters, by name.
            prefix: kind of the resource's ids.

        Raises:
            RequestError: `INVALID_REQUEST`.
        """


@dataclass(frozen=True, slots=True)
class PageQuery(OperationQuery):
    """The requested page of a list: `limit` items that follow the record with the id `before`."""

    limit: int = DEFAULT_LIMIT
    before: str | None = None

    PARAMETERS: ClassVar[tuple[QueryParameter, ...]] = (
        QueryParameter(
            "limit",
            "maximum number of items",
            {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
        ),
        QueryParameter(
            "cursor",
            "`next_cursor` of the previous page; empty for the first page",
            {"type": "string", "format": "cursor"},
        ),
    )

    @classmethod
    def parse(cls, params: Mapping[str, str], prefix: Prefix | None) -> Self:
        """Parse `limit` (1 to 200; 50 by default) and `cursor`, which must be of this list."""
        limit = _parse_whole_number(params, "limit", DEFAULT_LIMIT, 1, MAX_LIMIT)
        cursor = params.get("cursor")
        if not cursor:
            return cls(limit)
        try:
            before = base64.urlsafe_b64decode(cursor.encode("ascii")).decode("ascii")
        except (ValueError, binascii.Error):
            before = ""
        if not is_id(before, prefix):
            raise make_query_error("cursor", "is not a cursor of a list")
        return cls(limit, before)


def make_cursor(last_id: str) -> str:
    """Make the cursor of the page that follows the record with this id."""
    return base64.urlsafe_b64encode(last_id.encode("ascii")).decode("ascii")


@dataclass(frozen=True, slots=True)
class EventsQuery(OperationQuery):
    """The requested events: all after a number, with a wait while there are none."""

    after: int = 0
    wait_s: float = 0.0

    PARAMETERS: ClassVar[tuple[QueryParameter, ...]] = (
        QueryParameter(
            "after",
            "number of the last known event",
            {"type": "integer", "minimum": 0, "maximum": MAX_EVENT_NUMBER, "default": 0},
        ),
        QueryParameter(
            "wait",
            "maximum seconds to wait while there are no new events",
            {"type": "integer", "minimum": 0, "maximum": MAX_POLL_S, "default": 0},
        ),
    )

    @classmethod
    def parse(cls, params: Mapping[str, str], prefix: Prefix | None) -> Self:  # noqa: ARG003
        """Parse `after`, the number of an event, and `wait`, at most 30 seconds."""
        after = _parse_whole_number(params, "after", 0, 0, MAX_EVENT_NUMBER)
        return cls(after, float(_parse_whole_number(params, "wait", 0, 0, MAX_POLL_S)))


@dataclass(frozen=True, slots=True)
class UsageQuery(OperationQuery):
    """The requested usage: the days from `first` to `last`, grouped by some features."""

    first: date | None = None
    last: date | None = None
    groups: tuple[UsageGroup, ...] = DEFAULT_GROUPS

    PARAMETERS: ClassVar[tuple[QueryParameter, ...]] = (
        QueryParameter(
            "from", "first day, in UTC; by default, the last 30 days up to `to`", _DAY_SCHEMA
        ),
        QueryParameter("to", "last day, in UTC; today by default", _DAY_SCHEMA),
        QueryParameter(
            "group_by",
            "comma-separated fields of a line: day, capability, provider (these"
            " three by default), connection, agent, key; account selects all work"
            " by your own connections, of any account",
            {
                "type": "string",
                "pattern": "^({0})(,({0}))*$".format("|".join(USAGE_GROUPS)),
                "default": ",".join(DEFAULT_GROUPS),
            },
        ),
    )

    @classmethod
    def parse(cls, params: Mapping[str, str], prefix: Prefix | None) -> Self:  # noqa: ARG003
        """Parse `from` and `to`, which are days, and `group_by`, names that may not repeat."""
        names = params.get("group_by", ",".join(DEFAULT_GROUPS)).split(",")
        groups = tuple(group for group in USAGE_GROUPS if group in names)
        if len(groups) != len(names):
            unknown_name = next((name for name in names if name not in USAGE_GROUPS), "")
            fault = f"takes {', '.join(USAGE_GROUPS)}, each at most once"
            raise make_query_error(
                "group_by", f"{fault}. {ask_meant(unknown_name, USAGE_GROUPS)}".removesuffix(". ")
            )
        return cls(_parse_day(params, "from"), _parse_day(params, "to"), groups)


@dataclass(frozen=True, slots=True)
class BillingQuery(OperationQuery):
    """The requested bill: the month, by its first day, and the feature that groups its lines."""

    month: date | None = None
    by: BillingGroup | None = None

    PARAMETERS: ClassVar[tuple[QueryParameter, ...]] = (
        QueryParameter(
            "month",
            "month in UTC, such as 2026-11; the present month by default",
            {"type": "string", "pattern": MONTH_PATTERN},
        ),
        QueryParameter(
            "group_by",
            "a line for each key, or for each account whose work used your own connections",
            {"type": "string", "enum": list(BILLING_GROUPS)},
        ),
    )

    @classmethod
    def parse(cls, params: Mapping[str, str], prefix: Prefix | None) -> Self:  # noqa: ARG003
        """Parse `month`, such as 2026-11, and `group_by`, the name of a single group."""
        group_by, month = params.get("group_by"), params.get("month")
        by = next((group for group in BILLING_GROUPS if group == group_by), None)
        if by is None and group_by is not None:
            raise make_query_error("group_by", f"is not {' or '.join(BILLING_GROUPS)}")
        if month is None:
            return cls(None, by)
        if not re.fullmatch(MONTH_PATTERN.strip("^$"), month):
            raise make_query_error(
                "month", "is not a month from 2000-01 to 2099-12, such as 2026-11"
            )
        return cls(date.fromisoformat(f"{month}-01"), by)


@dataclass(frozen=True, slots=True)
class UnshareQuery(OperationQuery):
    """The account that loses its share of a connection; None for all accounts."""

    account_id: str | None = None

    PARAMETERS: ClassVar[tuple[QueryParameter, ...]] = (
        QueryParameter("account", "id of the account that loses access; all accounts by default"),
    )

    @classmethod
    def parse(cls, params: Mapping[str, str], prefix: Prefix | None) -> Self:  # noqa: ARG003
        """Parse `account`, the id of an account; its form is not checked."""
        return cls(params.get("account"))


@dataclass(frozen=True, slots=True)
class HealthQuery(OperationQuery):
    """The requested health: of the service, or its readiness for new work."""

    ready: bool = False

    PARAMETERS: ClassVar[tuple[QueryParameter, ...]] = (
        QueryParameter(
            "ready",
            "if true, the answer is 503 unless the service can accept new work, for load balancers",
            {"type": "boolean", "default": False},
        ),
    )

    @classmethod
    def parse(cls, params: Mapping[str, str], prefix: Prefix | None) -> Self:  # noqa: ARG003
        """Parse `ready`, which is `true` or `false`."""
        ready = params.get("ready", "false")
        if ready not in ("true", "false"):
            raise make_query_error("ready", "is not true or false")
        return cls(ready == "true")


def _parse_day(params: Mapping[str, str], name: str) -> date | None:
    text = params.get(name)
    if text is None:
        return None
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.A):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise make_query_error(name, "is not a day such as 2026-11-20")


def _parse_whole_number(
    params: Mapping[str, str], name: str, default: int, low: int, high: int
) -> int:
    text = params.get(name)
    if text is None:
        return default
    if not re.fullmatch(r"\d{1,16}", text, re.A) or not low <= int(text) <= high:
        raise make_query_error(name, f"is not a whole number from {low} to {high}")
    return int(text)


def make_query_error(name: str, why: str) -> RequestError:
    """Make the error for a rejected query parameter, with its name and the reason."""
    return RequestError(
        ErrorCode.INVALID_REQUEST, "A query parameter is wrong.", details=[Detail(name, why)]
    )
