"""An in-memory cache of values derived from the configuration, valid until it changes."""

from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from toolkit.store.configuration_version import ConfigurationVersion
from toolkit.store.store import Store

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
MAX_ENTRIES = 4096  # a full cache starts anew


class ConfigurationCache(Generic[K, T]):
    """A cache of values that depend only on accounts, API keys, connections and their shares.

    Entries are dropped when any of these changes, in any process: each look-up first reads the
    version of the configuration from the store. So a value is never older than a read of the
    rows would be. All callers share the values, so no caller may change them.

    Args:
        load: function that reads the value of a key; its errors are not cached.
    """

    def __init__(self, store: Store, load: Callable[[K], Awaitable[T]]) -> None:
        self._store = store
        self._load = load
        self._version: ConfigurationVersion = ()
        self._entries: dict[K, T] = {}

    def __len__(self) -> int:
        """Return how many values are kept."""
        return len(self._entries)

    async def find(self, key: K) -> T:
        """Return the value of a key as of now."""
        version = await self._store.get_configuration_version()
        if version != self._version:
            self._entries, self._version = {}, version
        entries = self._entries
        try:
            return entries[key]
        except KeyError:
            pass
        value = await self._load(key)
        if len(entries) >= MAX_ENTRIES:
            entries.clear()
        # The entries belong to the version that was read before; if it is out of date by now,
        # they are not used any more.
        entries[key] = value
        return value
