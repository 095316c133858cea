"""The filters of lists of work, as keyword arguments."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Final, TypedDict, TypeVar, cast, get_type_hints

from toolkit.client._options import check_options, show_keywords

F = TypeVar("F", bound=Callable[..., object])
_MARK = re.compile(r"^( *)\*\*filters: those of a list\.\n", re.MULTILINE)


class WorkFilters(TypedDict, total=False):
    """The conditions that each item of a list meets; a filter of None is ignored."""

    capability: str | None
    provider: str | None
    status: str | None
    tag: str | Sequence[str] | None
    since: datetime | date | str | None
    until: datetime | date | str | None
    min_cost_usd: float | None
    max_cost_usd: float | None
    q: str | None


WORK_FILTERS: Final[dict[str, str]] = {
    "capability": "capability of the work or of one of its nodes: a name, or `name@version`",
    "provider": "provider that served the work or one of its nodes",
    "status": "status of the work",
    "tag": "tag of the work, or several tags that it must all have",
    "since": "created at this time or later; a time without a zone is UTC",
    "until": "created before this time",
    "min_cost_usd": "minimum cost in US dollars",
    "max_cost_usd": "maximum cost in US dollars",
    "q": "text in the input, ignoring case",
}
"""The description of each filter, by name."""


def document_filters(function: F) -> F:
    """Make a function with `**filters` show each filter, as `document_options` shows options."""
    return show_keywords(function, get_type_hints(WorkFilters), WORK_FILTERS, _MARK)


def make_list_query(filters: WorkFilters) -> dict[str, str]:
    """Make the part of a query that filters work.

    Raises:
        TypeError: there is no such filter.

    >>> make_list_query({"tag": ["a", "b"], "since": date(2026, 11, 20)})
    {'tag': 'a,b', 'since': '2026-11-20'}
    """
    check_options(filters, WORK_FILTERS, what="filter")
    values = cast("Mapping[str, object]", filters)
    return {name: _write_value(value) for name, value in values.items() if value is not None}


def _write_value(value: object) -> str:
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return aware.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    return (
        str(value) if isinstance(value, str) or not isinstance(value, Sequence) else ",".join(value)
    )
