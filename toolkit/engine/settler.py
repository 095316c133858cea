"""Reconciliation of what crashes, lost replies and outages left half done at vendors."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from toolkit.contract.errors import ToolkitError
from toolkit.engine.stock import Stock

log = logging.getLogger(__name__)

SOON_S = 5.0
LATEST_S = 300.0


class Settler:
    """A background reconciler of each kind in turn, from the start on, blocking nothing.

    Args:
        stocks: the kinds, those that others depend on first.
    """

    def __init__(self, stocks: Sequence[Stock[Any, Any]]) -> None:
        self._stocks = stocks

    async def keep(self) -> None:
        """Reconcile repeatedly until cancelled, more slowly while a vendor is unreachable."""
        wait_s = SOON_S
        while True:
            try:
                later = await self.settle()
            except Exception:
                log.exception("what was left at vendors is settled later")
                later = True
            wait_s = min(2 * wait_s, LATEST_S) if later else SOON_S
            await asyncio.sleep(wait_s)

    async def settle(self) -> bool:
        """Reconcile what can be done now; return whether something is left for later."""
        later = False
        for stock in self._stocks:
            try:
                later |= await stock.settle()
            except ToolkitError as error:
                log.warning("the store did not answer the settler: %s", error)
                later = True
        return later
