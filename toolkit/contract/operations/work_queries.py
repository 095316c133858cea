"""The queries of lists of work: a page, and the conditions on each item."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar, Final, Self, get_args

from toolkit.contract.annotations import MAX_TAG_LENGTH, MAX_TAGS
from toolkit.contract.base import JsonObject
from toolkit.contract.ids import Prefix
from toolkit.contract.jobs import JobStatus
from toolkit.contract.maps import MapStatus
from toolkit.contract.operations.queries import PageQuery, QueryParameter, make_query_error
from toolkit.contract.suggestions import ask_meant
from toolkit.contract.tasks import TaskStatus
from toolkit.contract.workflows import WorkflowStatus

MAX_TEXT_LENGTH = 200
MAX_NAME_LENGTH = 200  # of a capability or provider
MAX_TIME_LENGTH = 64
_MONEY_SCHEMA: JsonObject = {"type": "number", "minimum": 0}
_MOMENT_SCHEMA: JsonObject = {
    "type": "string", "anyOf": [{"format": "date-time"}, {"format": "date"}]
}  # fmt: skip
# By RFC 3339, in which 60 is a valid second.
_TIME = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)"
    r"([Tt](?P<minute>\d\d:\d\d):(?P<second>\d\d)(?P<part>\.\d+)?(?P<zone>[Zz]|[+-]\d\d:\d\d))?",
    re.ASCII,
)
_AMOUNT_PATTERN = r"[0-9]{1,20}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?"


@dataclass(frozen=True, slots=True)
class WorkFilter:
    """The conditions that all listed work meets; None for a condition that was not given.

    Attributes:
        capability: a name, or `name@version`; for a workflow or task, of one of its nodes.
        provider: provider that served it, or one of its nodes or rows.
        tags: tags that it has, all of them.
        since, until: bounds of the time of its request; `since` is included, `until` is not.
        min_cost_usd, max_cost_usd: bounds of a known cost, in US dollars.
        text: text in its input, without regard to case.
    """

    capability: str | None = None
    provider: str | None = None
    status: str | None = None
    tags: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    min_cost_usd: float | None = None
    max_cost_usd: float | None = None
    text: str | None = None


NO_FILTER: Final = WorkFilter()


# Part of each tag is not white space, as both JSON Schema and Python define white space.
_TAG_PART = r"[^,]*[^\s,\x1c-\x1f\x85][^,]*"
_TAGS_PATTERN: Final = f"^{_TAG_PART}(,{_TAG_PART})*$"


def _make_parameters(statuses: tuple[str, ...], of_nodes: str) -> tuple[QueryParameter, ...]:
    """Make the query parameters of a list of work: its page and its filter.

    Args:
        statuses: states of this kind of work.
        of_nodes: addition to the descriptions about its nodes; "" if it has no nodes.
    """
    limits: JsonObject = {"type": "string", "minLength": 1}
    return (
        *PageQuery.PARAMETERS,
        QueryParameter(
            "capability",
            f"only work of this capability, a name or `name@version`{of_nodes}",
            {**limits, "maxLength": MAX_NAME_LENGTH},
        ),
        QueryParameter(
            "provider",
            f"only work that this provider served{of_nodes}",
            {**limits, "maxLength": MAX_NAME_LENGTH},
        ),
        QueryParameter(
            "status", "only work with this status", {"type": "string", "enum": list(statuses)}
        ),
        QueryParameter(
            "tag",
            "only work with this tag, or with all of several comma-separated tags",
            {**limits, "maxLength": MAX_TAGS * (MAX_TAG_LENGTH + 1), "pattern": _TAGS_PATTERN},
        ),
        QueryParameter(
            "since",
            "only work created at this time or later: 2026-11-20, or 2026-11-20T08:30:00Z",
            _MOMENT_SCHEMA,
        ),
        QueryParameter("until", "only work created before this time", _MOMENT_SCHEMA),
        QueryParameter(
            "min_cost_usd", "only work that cost at least this, in US dollars", _MONEY_SCHEMA
        ),
        QueryParameter(
            "max_cost_usd", "only work that cost at most this, in US dollars", _MONEY_SCHEMA
        ),
        QueryParameter(
            "q",
            "only work with this text in its input, ignoring case",
            {**limits, "maxLength": MAX_TEXT_LENGTH},
        ),
    )


@dataclass(frozen=True, slots=True)
class WorkQuery(PageQuery):
    """The requested page of a list of work, and the filter of its items."""

    filter: WorkFilter = NO_FILTER

    STATUSES: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def parse(cls, params: Mapping[str, str], prefix: Prefix | None) -> Self:
        """Parse `limit`, `cursor`, and the filters of the items."""
        page = PageQuery.parse(params, prefix)
        if not params.keys() - {"limit", "cursor"}:
            return cls(page.limit, page.before)
        work_filter = WorkFilter(
            capability=_parse_text(params, "capability", MAX_NAME_LENGTH),
            provider=_parse_text(params, "provider", MAX_NAME_LENGTH),
            status=cls._parse_status(params),
            tags=_parse_tags(params),
            since=_parse_time(params, "since"),
            until=_parse_time(params, "until"),
            min_cost_usd=_parse_amount(params, "min_cost_usd"),
            max_cost_usd=_parse_amount(params, "max_cost_usd"),
            text=_parse_text(params, "q", MAX_TEXT_LENGTH),
        )
        return cls(page.limit, page.before, work_filter)

    @classmethod
    def _parse_status(cls, params: Mapping[str, str]) -> str | None:
        status = params.get("status")
        if status is None or status in cls.STATUSES:
            return status
        question = ask_meant(status, cls.STATUSES)
        fault = f"is not one of {', '.join(cls.STATUSES)}"
        raise make_query_error("status", f"{fault}. {question}" if question else fault)


class RunsQuery(WorkQuery):
    """The requested page of the list of runs, and its filter."""

    __slots__ = ()
    STATUSES = get_args(JobStatus)
    PARAMETERS = _make_parameters(STATUSES, "")


class MapsQuery(WorkQuery):
    """The requested page of the list of maps, and its filter."""

    __slots__ = ()
    STATUSES = get_args(MapStatus)
    PARAMETERS = _make_parameters(STATUSES, ", for one of its rows")


class WorkflowsQuery(WorkQuery):
    """The requested page of the list of workflows, and its filter."""

    __slots__ = ()
    STATUSES = get_args(WorkflowStatus)
    PARAMETERS = _make_parameters(STATUSES, ", in one of its nodes")


class TasksQuery(WorkQuery):
    """The requested page of the list of tasks, and its filter."""

    __slots__ = ()
    STATUSES = get_args(TaskStatus)
    PARAMETERS = _make_parameters(STATUSES, ", in a node of one of its workflows")


def _parse_text(params: Mapping[str, str], name: str, longest: int) -> str | None:
    text = params.get(name)
    if text is None:
        return None
    if not 0 < len(text) <= longest:
        raise make_query_error(name, f"is not 1 to {longest} characters long")
    if "\0" in text:
        raise make_query_error(name, "contains a NUL character")
    return text


def _parse_tags(params: Mapping[str, str]) -> tuple[str, ...]:
    text = _parse_text(params, "tag", MAX_TAGS * (MAX_TAG_LENGTH + 1))
    if text is None:
        return ()
    tags = tuple(dict.fromkeys(tag.strip() for tag in text.split(",")))
    if not all(tags):
        raise make_query_error("tag", "has an empty tag before or after a comma")
    if len(tags) > MAX_TAGS:
        raise make_query_error("tag", f"names more than {MAX_TAGS} tags, the maximum of a record")
    return tags


def _parse_time(params: Mapping[str, str], name: str) -> datetime | None:
    text = params.get(name)
    if text is None:
        return None
    match = _TIME.fullmatch(text) if len(text) <= MAX_TIME_LENGTH else None
    moment = _make_moment(match) if match else None
    if moment is None:
        raise make_query_error(
            name, "is not a time such as 2026-11-20T08:30:00Z, or a day such as 2026-11-20"
        )
    return moment


def _make_moment(match: re.Match[str]) -> datetime | None:
    """Convert a matched day or time to a time in UTC; returns None if it does not exist.

    A leap second counts as second 59. Digits beyond a microsecond are cut off.
    """
    second = "59" if match["second"] == "60" else match["second"] or "00"
    part = (match["part"] or "")[:7]
    zone = (match["zone"] or "Z").upper()
    try:
        moment = datetime.fromisoformat(
            f"{match['day']}T{match['minute'] or '00:00'}:{second}{part}"
        )
        offset = datetime.fromisoformat(f"2000-01-01T00:00:00{zone}").tzinfo
    except ValueError:
        return None
    try:
        return moment.replace(tzinfo=offset).astimezone(UTC)
    except OverflowError:  # at the edge of the calendar, where the zone makes no difference
        return moment.replace(tzinfo=UTC)


def _parse_amount(params: Mapping[str, str], name: str) -> float | None:
    text = params.get(name)
    if text is None:
        return None
    if not re.fullmatch(_AMOUNT_PATTERN, text) or not math.isfinite(float(text)):
        raise make_query_error(name, "is not an amount of dollars such as 0.05")
    return float(text)
