"""Admission: what is refused before anything is stored or spent."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from toolkit.contract.errors import ErrorCode, RequestError, not_found
from toolkit.contract.jobs import Options
from toolkit.engine.artifacts import Artifacts
from toolkit.engine.core import Core
from toolkit.engine.router import check, route
from toolkit.plugins import Capability, Operation


class Admission:
    """Decides whether work can be accepted, by the same router that will carry it out."""

    def __init__(self, core: Core, artifacts: Artifacts) -> None:
        self._core = core
        self._artifacts = artifacts

    async def admit(
        self,
        account_id: str,
        capability: Capability,
        given: Mapping[str, object],
        options: Options,
        operation: Operation[Any] | None,
    ) -> Decimal | None:
        """Check connections, named artifacts and endpoint.

        Returns:
            what the first choice is expected to cost; none where its price is unknown.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `PROVIDER_NOT_ALLOWED`, or `NOT_FOUND` for an
                artifact or endpoint.
        """
        backends = await self._core.backends(account_id, capability)
        check(capability, options, backends)
        for field, take in capability.takes.items():
            named = given.get(field)
            if take.form == "artifact" and isinstance(named, str):
                await self._artifacts.get(account_id, named)
        if options.endpoint_id is not None:
            row = await self._core.store.get("endpoints", options.endpoint_id)
            if row is None or row["account_id"] != account_id or row["status"] == "deleted":
                raise not_found("endpoint", options.endpoint_id)
        if operation is None:
            return Decimal(0)
        routing = route(capability, options, operation, backends)
        first = next((c for c in routing.candidates if not c.excluded), None)
        if first is None:
            return Decimal(0)
        known = first.estimated_cost_usd
        return None if known is None else Decimal(str(known))


def within_budget(limit: float | None, expected: Sequence[Decimal | None]) -> None:
    """Refuse what is expected to cost more than it may, or has no known price.

    Raises:
        RequestError: `BUDGET_EXCEEDED`.
    """
    if limit is None:
        return
    if None in expected:
        raise RequestError(
            ErrorCode.BUDGET_EXCEEDED, "A price is unknown, so the cost cannot be kept to a budget."
        )
    total = sum((cost for cost in expected if cost is not None), Decimal(0))
    if total > Decimal(str(limit)):
        raise RequestError(
            ErrorCode.BUDGET_EXCEEDED,
            f"It may cost ${total:.6f}, and max_cost_usd is ${limit:.6f}.",
        )
