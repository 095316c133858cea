"""What an account may have: work that is not done, and bytes that are kept."""

import math
import time

from toolkit.contract.errors import ErrorCode, RequestError, ServiceError
from toolkit.settings import Settings
from toolkit.store import Store

COUNTED_EVERY_S = 30.0
RETRY_AFTER_S = 5.0
NEVER = (-math.inf, 0)


class Quotas:
    """Keeps accounts to what `Settings` allows each.

    Bytes are added up now and then: what other processes add or take away counts by then, what
    this one adds at once.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._held: dict[str, tuple[float, int]] = {}

    async def check_queue(self, account_id: str) -> None:
        """Refuse more work where too much of it is not done yet, or nothing of it could be kept.

        Raises:
            ServiceError: `RATE_LIMITED`.
            RequestError: `PAYLOAD_TOO_LARGE`.
        """
        most = self._settings.max_queued
        if await self._store.queued(account_id, most) >= most:
            raise ServiceError(
                ErrorCode.RATE_LIMITED,
                f"{most} runs, jobs, workflows and tasks of this account are not done yet; ask"
                " again when some are.",
                retry_after=RETRY_AFTER_S,
            )
        await self.check_room(account_id, 1)

    async def check_room(self, account_id: str, size_bytes: int) -> None:
        """Refuse bytes that are more than the account may still keep.

        Raises:
            RequestError: `PAYLOAD_TOO_LARGE`: to send less helps, and to send it again does not.
        """
        most = self._settings.max_stored_bytes
        counted, held = self._held.get(account_id, NEVER)
        if time.monotonic() - counted > COUNTED_EVERY_S:
            held = await self._store.stored_bytes(account_id)
            self._held[account_id] = time.monotonic(), held
        if held + size_bytes > most:
            raise RequestError(
                ErrorCode.PAYLOAD_TOO_LARGE,
                f"The account keeps {held} bytes of artifacts and may keep {most}: delete some, or"
                " have the operator allow more.",
            )

    def add(self, account_id: str, size_bytes: int) -> None:
        """Count bytes that are about to be kept; less than none, that are kept no longer."""
        if account_id in self._held:
            counted, held = self._held[account_id]
            self._held[account_id] = counted, held + size_bytes
