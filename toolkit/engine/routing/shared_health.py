"""The health of a connection that engines share: its breaker, and a vendor's `Retry-After`."""

from functools import partial

from toolkit.contract.errors import ServiceError
from toolkit.engine.limits.deployment import Deployment, SharedRow
from toolkit.engine.routing.connection_health import (
    MAX_RETRY_AFTER_S,
    BreakerPosition,
    ConnectionHealth,
)
from toolkit.store import LimitDocument

# A probe that has not ended by then is considered lost: another engine may probe.
MAX_PROBE_S = 60.0


class SharedHealth(SharedRow):
    """The news of a connection's health that the engines of a deployment share.

    Args:
        row_id: id of the row that the engines share.
        health: the connection's health, as this engine knows it.
        deployment: the engines.
    """

    def __init__(self, row_id: str, health: ConnectionHealth, deployment: Deployment) -> None:
        super().__init__(row_id, deployment)
        self._health = health
        self._seen = 0  # the number of the last news

    def publish(self) -> None:
        """Publish the breaker's position, and the time until which the vendor is not called."""
        position = self._health.get_position()
        until = self._deployment.to_shared(position.blocked_until)
        self._change_later(partial(_write_news, self._deployment.engine_id, position, until))

    async def claim_probe(self) -> bool:
        """Claim the half-open probe of a connection; return whether this engine may make it.

        Without other engines, or without the store, it may.
        """
        if self._deployment.is_alone:
            return True
        try:
            return await self._change(partial(_claim_probe, self._deployment.engine_id))
        except ServiceError:
            return True

    def release_probe(self) -> None:
        """Release the probe, whatever its result, so that another engine may make the next."""
        self._change_later(partial(_release_probe, self._deployment.engine_id))

    def note_engines(self) -> None:
        """Publish an open breaker or a pause to the others, as this engine may have been alone."""
        if self._health.is_troubled:
            self.publish()

    def read_row(self, document: LimitDocument) -> None:
        """Apply the news that other engines published."""
        news = document.get("health")
        if news is None or news["n"] <= self._seen:
            return
        self._seen = news["n"]
        if news["by"] != self._deployment.engine_id:
            until = self._deployment.to_local(news["until"])
            self._health.set_position(BreakerPosition(news["open"], until, news["cooldowns"]))


def _write_news(
    engine: str, position: BreakerPosition, until: float, document: LimitDocument, at: float
) -> None:
    """Write news into the row and end the probe, because its result is now known."""
    previous = document.get("health", {})
    # The longest requested wait applies, unless the breaker has just been closed.
    longer = previous.get("until", 0.0) if previous.get("open", False) == position.is_open else 0.0
    document["health"] = {
        "n": previous.get("n", 0) + 1,
        "by": engine,
        "open": position.is_open,
        # A time further ahead comes from a clock that has restarted.
        "until": max(until, longer if longer <= at + MAX_RETRY_AFTER_S else 0.0),
        "cooldowns": position.cooldowns,
    }
    document.pop("probe", None)


def _claim_probe(engine: str, document: LimitDocument, at: float) -> bool:
    """Give an engine the probe unless another has it; return whether the engine now has it."""
    holder, until = document.get("probe", (engine, 0.0))
    if holder != engine and at < until <= at + MAX_PROBE_S:
        return False
    document["probe"] = [engine, at + MAX_PROBE_S]
    return True


def _release_probe(engine: str, document: LimitDocument, _at: float) -> None:
    if document.get("probe", [""])[0] == engine:
        del document["probe"]
