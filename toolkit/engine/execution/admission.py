"""Admission: refuses requests before anything is stored or spent."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.jobs import Options
from toolkit.contract.money import ZERO_USD
from toolkit.engine.context import EngineContext
from toolkit.engine.money.affordability import explain_over_budget
from toolkit.engine.routing.provider_pool import ProviderPool
from toolkit.engine.routing.router import check_servable, route
from toolkit.engine.services.artifacts import Artifacts
from toolkit.plugins import Capability, Operation
from toolkit.store import ReadScope


class Admission:
    """The admission of the work of one request, decided by the router that will serve it.

    Facts that its nodes have in common are looked up once.
    """

    def __init__(self, core: EngineContext, artifacts: Artifacts, scope: ReadScope) -> None:
        self._core = core
        self._artifacts = artifacts
        self._scope = scope
        self._pools: dict[tuple[str | None, ...], ProviderPool] = {}
        self._servable: set[tuple[str | None, ...]] = set()
        self._places: set[tuple[str | None, str | None]] = set()

    async def admit(
        self,
        capability: Capability,
        job_input: Mapping[str, object],
        options: Options,
        operation: Operation[Any] | None,
    ) -> Decimal | None:
        """Check connections, named artifacts, where it is to run, and that a budget covers it.

        Args:
            capability: the capability to run.
            job_input: the input of the run.
            options: the options of the run.
            operation: the vendor operation that the run would need, or None if not known yet.

        Returns:
            the maximum cost of the first choice, or None if it has no known bound.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `PROVIDER_NOT_ALLOWED`, `NOT_FOUND` for an
                artifact, endpoint or compute, `INVALID_REQUEST` for both of the latter, or
                `BUDGET_EXCEEDED` if no possible call would fit.
        """
        providers = await self.find_providers(capability, options)
        needs = frozenset[str]() if operation is None else operation.abilities
        choice = (*_name_choice(capability, options), *sorted(needs))
        if choice not in self._servable:
            check_servable(capability, options, providers, needs)
            self._servable.add(choice)
        await self.check_references(capability, job_input, options)
        if operation is None:
            return ZERO_USD
        routing = route(capability, options, operation, providers)
        refusal = explain_over_budget(routing)
        if refusal is not None and capability.operation_required:
            raise RequestError(ErrorCode.BUDGET_EXCEEDED, refusal)
        first = routing.first_choice
        return ZERO_USD if first is None else first.reservation_usd

    async def find_providers(self, capability: Capability, options: Options) -> ProviderPool:
        """Find the providers of a capability; nodes with the same choice share one look-up."""
        choice = _name_choice(capability, options)
        pool = self._pools.get(choice)
        if pool is None:
            pool = await self._core.directory.find_providers(self._scope, capability, options)
            self._pools[choice] = pool
        return pool

    async def check_references(
        self, capability: Capability, job_input: Mapping[str, object], options: Options
    ) -> None:
        """Refuse artifacts and places that a request names and the account does not have.

        Raises:
            RequestError: `NOT_FOUND`, or `INVALID_REQUEST` for two places.
        """
        for artifact_id in capability.list_artifacts(job_input).values():
            await self._artifacts.find(self._scope, artifact_id)
        place = options.endpoint_id, options.compute_id
        if place not in self._places:
            if None not in place:
                raise RequestError(
                    ErrorCode.INVALID_REQUEST,
                    "GPU work runs on an endpoint or on a compute, not on both.",
                    details=[Detail("compute_id", "cannot be combined with endpoint_id")],
                )
            await check_place(self._core, self._scope, *place)
            self._places.add(place)


def _name_choice(capability: Capability, options: Options) -> tuple[str | None, ...]:
    """Return the options that decide which connections may serve a node."""
    return capability.name, options.endpoint_id, options.compute_id, options.provider


async def check_place(
    core: EngineContext, scope: ReadScope, endpoint_id: str | None, compute_id: str | None
) -> None:
    """Refuse a place to run that does not exist.

    Raises:
        RequestError: `NOT_FOUND`.
    """
    if endpoint_id is not None:
        await core.records.endpoints.get_row(scope, endpoint_id)
    if compute_id is not None:
        await core.records.compute.get_row(scope, compute_id)
