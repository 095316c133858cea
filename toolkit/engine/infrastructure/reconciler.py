"""Reconciliation of work that crashes, lost replies and outages left half done at vendors."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from toolkit.contract.errors import ToolkitError
from toolkit.engine.infrastructure.managed_resource import ManagedResource

log = logging.getLogger(__name__)

MIN_INTERVAL_S = 5.0
MAX_INTERVAL_S = 300.0


class Reconciler:
    """The background task that reconciles each kind of infrastructure in turn.

    Args:
        stocks: kinds of infrastructure, in the order in which they are reconciled.
    """

    def __init__(self, stocks: Sequence[ManagedResource[Any, Any]]) -> None:
        self._resources = stocks

    async def run_forever(self) -> None:
        """Reconcile repeatedly until cancelled, more slowly while a vendor is unreachable."""
        wait_s = MIN_INTERVAL_S
        while True:
            try:
                later = await self.reconcile()
            except Exception:
                log.exception("unfinished resources are reconciled later")
                later = True
            wait_s = min(2 * wait_s, MAX_INTERVAL_S) if later else MIN_INTERVAL_S
            await asyncio.sleep(wait_s)

    async def reconcile(self) -> bool:
        """Reconcile all that is possible now; return whether anything is left for later."""
        later = False
        for stock in self._resources:
            try:
                later |= await stock.reconcile()
            except ToolkitError as error:
                log.warning("the store did not answer the reconciler: %s", error)
                later = True
        return later
