# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.usage`: usage summaries."""

from collections.abc import Sequence
from datetime import date

from toolkit.client._collections import UsageLines
from toolkit.client._record_view import UsageView
from toolkit.client._sync.http import HttpClient
from toolkit.contract.choices import UsageGroup
from toolkit.contract.usage import UsageLine


class Usage:
    """`client.usage`."""

    def __init__(self, http: HttpClient) -> None:
        self._http = http

    def list(
        self,
        group_by: Sequence[UsageGroup] = ("day", "capability", "provider"),
        *,
        first: date | str | None = None,
        last: date | str | None = None,
    ) -> UsageLines:
        """Sum up what was used: a line for each group that is alike in all it is grouped by.

        Args:
            group_by: of `day`, `capability`, `provider`, `connection`, `agent` and `key`. With
                `account` it is all that was done by the caller's own connections, for anybody.
            first, last: the first and the last day, by UTC; the last 30 days by default.

        Raises:
            RequestError: `INVALID_REQUEST`, as for more than a year.
        """
        span = {"from": first, "to": last}
        days = {name: str(day) for name, day in span.items() if day is not None}
        params = {"group_by": ",".join(group_by), **days}
        page = self._http.request_page(UsageLine, "/usage", params)
        return UsageLines([UsageView(line) for line in page.records])
