"""Admission: checks that refuse a request before anything is stored or spent."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.jobs import Options
from toolkit.contract.money import ZERO_USD
from toolkit.engine.context import EngineContext
from toolkit.engine.money.affordability import BudgetLeft, explain_over_budget
from toolkit.engine.money.allowance import SpendingLimit
from toolkit.engine.ranking import Ranking
from toolkit.engine.routing.provider_pool import ProviderPool
from toolkit.engine.routing.router import check_servable, find_needs, find_table
from toolkit.engine.routing.routing_table import RoutingTable
from toolkit.engine.services.artifacts import Artifacts
from toolkit.plugins import Capability, Operation
from toolkit.store import ReadScope

FRESH_S = 0.2


@dataclass(frozen=True, slots=True)
class Admitted:
    """What was found at the admission of a job, for its first call.

    Attributes:
        at: when it was found, by the monotonic clock.
        providers: the vendors, models and connections; None if there was no admission.
        limits: the daily allowances that the job counts against.
        operation: the operation that was routed; None if none is known yet.
        table: the candidates that were ranked; None without an operation.
        ranking: the router's decision; None without an operation.
    """

    at: float = 0.0
    providers: ProviderPool | None = None
    limits: Sequence[SpendingLimit] = ()
    operation: Operation[Any] | None = None
    table: RoutingTable | None = None
    ranking: Ranking | None = None

    @property
    def is_fresh(self) -> bool:
        """Whether a call that begins now need not look again.

        The time is that of a job that begins at once. Its acceptance and its first call are then
        written in one transaction, because nothing is read from the store in between.
        """
        return self.providers is not None and time.monotonic() - self.at < FRESH_S

    @property
    def bound(self) -> Decimal | None:
        """The maximum cost of the first choice: None if unknown, 0 without a choice."""
        first = None if self.ranking is None else self.ranking.first_choice
        return ZERO_USD if first is None else first.reservation_usd


class Admission:
    """The admission of the work of one request, decided by the router that will serve it.

    Facts that its nodes have in common are looked up once.

    Args:
        is_map: whether the work is a map, whose rows may be put into batches.
    """

    def __init__(
        self, core: EngineContext, artifacts: Artifacts, scope: ReadScope, *, is_map: bool = False
    ) -> None:
        self._core = core
        self._artifacts = artifacts
        self._scope = scope
        self._is_map = is_map
        self._pools: dict[tuple[object, ...], ProviderPool] = {}
        self._servable: set[tuple[object, ...]] = set()
        self._places: set[tuple[str | None, str | None]] = set()

    async def admit(
        self,
        capability: Capability,
        job_input: Mapping[str, object],
        options: Options,
        operation: Operation[Any] | None,
    ) -> Admitted:
        """Check that a job's connection, artifacts and endpoint exist and that a budget covers it.

        Args:
            capability: the capability to run.
            job_input: the input of the run.
            options: the options of the run.
            operation: the vendor operation that the run would need, or None if not known yet.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `PROVIDER_NOT_ALLOWED`, `NOT_FOUND` for an
                artifact, endpoint or compute, `INVALID_REQUEST` for both of the latter or for
                batches of other work than a map, or `BUDGET_EXCEEDED` if the capability always
                calls a vendor and no possible call would fit.
        """
        if options.when == "batch" and not self._is_map:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                "Only the rows of a map become batches: leave `when` out, or use /v1/maps.",
                details=[Detail("options.when", "is for maps")],
            )
        at, providers = time.monotonic(), await self.find_providers(capability, options)
        needs = find_needs(operation, options)
        choice = (*_name_choice(capability, options), *sorted(needs))
        if choice not in self._servable:
            check_servable(capability, options, providers, needs)
            self._servable.add(choice)
        await self.check_references(capability, job_input, options)
        if operation is None:
            return Admitted(at, providers)
        table = find_table(capability, options, providers, needs)
        ranking = table.rank(operation, BudgetLeft.of(options))
        refusal = explain_over_budget(ranking)
        if refusal is not None and capability.operation_required:
            raise RequestError(ErrorCode.BUDGET_EXCEEDED, refusal)
        return Admitted(at, providers, (), operation, table, ranking)

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
        """Check that the account has the artifacts, endpoint or compute that a request names.

        Raises:
            RequestError: `NOT_FOUND`, or `INVALID_REQUEST` if it names both an endpoint and a
                compute.
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


def _name_choice(capability: Capability, options: Options) -> tuple[object, ...]:
    """Return the capability's name and the options that decide which connections may serve it."""
    return capability.name, options.endpoint_id, options.compute_id, options.provider


async def check_place(
    core: EngineContext, scope: ReadScope, endpoint_id: str | None, compute_id: str | None
) -> None:
    """Check that the named endpoint and compute exist; None names none.

    Raises:
        RequestError: `NOT_FOUND`.
    """
    if endpoint_id is not None:
        await core.records.endpoints.get_row(scope, endpoint_id)
    if compute_id is not None:
        await core.records.compute.get_row(scope, compute_id)
