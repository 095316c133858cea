"""Quotas of an account: its unfinished work and its stored bytes."""

import asyncio
from collections import Counter
from functools import partial

from toolkit.contract.errors import ErrorCode, RequestError, ServiceError
from toolkit.engine.access.account_status import is_disabled, make_disabled_error
from toolkit.settings import Settings
from toolkit.store import ConfigurationCache, Store

RETRY_AFTER_S = 5.0
MEGABYTE = 1e6


class Quotas:
    """The limits of unfinished work and of stored bytes that `Settings` gives each account.

    The store totals the artifacts and records of an account as they are written. Writes still in
    progress are counted here.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._disabled = ConfigurationCache(store, partial(is_disabled, store))
        self._pending: dict[str, tuple[str, int]] = {}
        self._pending_bytes: Counter[str] = Counter()

    async def check_queue(self, account_id: str) -> None:
        """Refuse more work if too much is unfinished, or if its results could not be stored.

        Raises:
            ServiceError: `RATE_LIMITED`.
            RequestError: `PAYLOAD_TOO_LARGE`; `UNAUTHENTICATED` for an account that was disabled
                after the request was authenticated.
        """
        if await self._disabled.find(account_id):
            raise make_disabled_error()
        limit = self._settings.max_queued
        if await self._store.count_open_roots(account_id, limit) >= limit:
            raise ServiceError(
                ErrorCode.RATE_LIMITED,
                f"The account has {limit} unfinished runs, jobs, maps, workflows and tasks:"
                " that is the maximum, so try again when some have ended.",
                retry_after=RETRY_AFTER_S,
            )
        await self.check_storage(account_id, 1)

    async def check_storage(self, account_id: str, size_bytes: int) -> None:
        """Refuse bytes that exceed the rest of the account's storage quota.

        Raises:
            RequestError: `PAYLOAD_TOO_LARGE`: sending less helps, sending it again does not.
        """
        limit = self._settings.max_stored_bytes
        artifacts, records = await self._store.get_stored_bytes(account_id)
        artifacts += self._pending_bytes[account_id]
        if artifacts + records + size_bytes > limit:
            raise RequestError(
                ErrorCode.PAYLOAD_TOO_LARGE,
                f"The account stores {_format_megabytes(artifacts)} of artifacts and"
                f" {_format_megabytes(records)} of records, and its limit is"
                f" {_format_megabytes(limit)}: delete artifacts, or ask the operator to remove old"
                " work (`toolkit prune`) or to raise `max_stored_bytes`.",
            )

    def add_pending(self, account_id: str, artifact_id: str, size_bytes: int) -> None:
        """Count an artifact's bytes for the account until its record is in the store."""
        self._pending[artifact_id] = account_id, size_bytes
        self._pending_bytes[account_id] += size_bytes

    def remove_pending_once(self, commit: "asyncio.Future[None]", artifact_id: str) -> None:
        """Stop counting an artifact's bytes here once the write of its record succeeds or fails."""
        commit.add_done_callback(lambda _: self.remove_pending(artifact_id))

    def remove_pending(self, artifact_id: str) -> None:
        """Stop counting an artifact's bytes here; do nothing if they are not counted.

        The store counts them by now, or their record will never be written.
        """
        account_id, size_bytes = self._pending.pop(artifact_id, ("", 0))
        self._pending_bytes[account_id] -= size_bytes
        if not self._pending_bytes[account_id]:
            del self._pending_bytes[account_id]


def _format_megabytes(size_bytes: int) -> str:
    """Format a size in megabytes.

    >>> _format_megabytes(124_000_000), _format_megabytes(512)
    ('124 MB', '0.000512 MB')
    """
    return f"{size_bytes / MEGABYTE:g} MB"
