"""A cache of what follows from the configuration, in memory until any of that changes."""

from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from toolkit.store.configuration_version import ConfigurationVersion
from toolkit.store.store import Store

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
MAX_ENTRIES = 4096  # a full cache starts anew


class ConfigurationCache(Generic[K, T]):
    """A cache of values that accounts, API keys, connections and their shares alone decide.

    Its entries are dropped as soon as any of these has changed, whichever process changed it: each
    look-up first asks the store for the version of the configuration. So a value is never older
    than what a read of the rows would have returned. It is shared by all who ask: nobody changes
    it.

    Args:
        store: has the configuration.
        load: reads the value of a key; what it raises is not kept.
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
        # Into the entries of the version that was read before: if it is another one by now, they
        # are no longer looked at.
        entries[key] = value
        return value
