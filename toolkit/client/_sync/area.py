# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""The base of the client's resources: reading, listing, and following what is under way."""

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from toolkit.client import _wire
from toolkit.client._collections import Collection
from toolkit.client._sync.handle import Handle
from toolkit.client._sync.http import Http
from toolkit.contract.events import Event

H = TypeVar("H", bound=Handle[Any])
MOST_MET = 500  # ids for completion, of each resource


class Area(Generic[H]):
    """A `/v1` resource whose records can be read and listed."""

    handle: type[H]

    def __init__(self, http: Http) -> None:
        self._http = http
        self._met: dict[str, None] = {}

    def _made(self, record: Any) -> H:
        made = self.handle(self._http, record)
        self._meet(made.id)
        return made

    def _meet(self, id: str) -> None:  # noqa: A002 - the contract's word
        self._met[id] = None
        if len(self._met) > MOST_MET:
            del self._met[next(iter(self._met))]

    def __getitem__(self, id: str) -> H:  # noqa: A002 - the contract's word
        return self.get(id)

    def _ipython_key_completions_(self) -> list[str]:
        """Return the ids seen so far, newest last: completing sends no request."""
        return list(self._met)

    def _posted(self, body: Mapping[str, object]) -> H:
        path = f"/{self.handle.area}"
        return self._made(self._http.data(self.handle.model, "POST", path, json=body))

    def _asked(
        self,
        method: str,
        id: str,  # noqa: A002
        what: str = "",
        body: Mapping[str, object] | None = None,
    ) -> H:
        path = f"/{self.handle.area}/{id}{what}"
        return self._made(self._http.data(self.handle.model, method, path, json=body))

    def get(self, id: str) -> H:  # noqa: A002 - the contract's word
        """Read one.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        return self._asked("GET", id)

    def list(self, limit: int = 50, cursor: str | None = None) -> Collection[H]:
        """Read a page of them, newest first; its `next_cursor` leads to the next."""
        records, following = self._http.page(
            self.handle.model, f"/{self.handle.area}", _wire.page(limit, cursor)
        )
        return Collection([self._made(record) for record in records], self.handle.area, following)

    def iterate(self, page: int = 50) -> Iterator[H]:
        """Yield all of them, newest first; each page is read when the one before is used up.

        Iterating over the resource itself does the same.

        Args:
            page: how many are read at once, 1 to 200.
        """
        found = self.list(page)
        while True:
            for item in found:
                yield item
            if found.next_cursor is None:
                return
            found = self.list(page, found.next_cursor)

    def __iter__(self) -> Iterator[H]:
        return self.iterate()


class Followed(Area[H]):
    """A resource of work that has events and can be cancelled."""

    def events(self, id: str, after: int = 0, wait_s: int = 0) -> list[Event]:  # noqa: A002
        """Read the events of one, numbered above `after`."""
        return self._http.events(f"/{self.handle.area}/{id}", after, wait_s)

    def cancel(self, id: str) -> H:  # noqa: A002
        """Cancel one; one that has ended stays as it is."""
        return self._asked("POST", id, "/cancel")
