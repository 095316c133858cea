"""The search of one operation for a connection that serves it, and the delay before each call.

A connection is called again while that is worth it, then the next connection. If all of them cool
down, the search waits for the first that may be called again.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from toolkit.contract.connections import Connection
from toolkit.contract.errors import ErrorCode, WorkError
from toolkit.contract.jobs import Options
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.job_run import JobRun, write_detail
from toolkit.engine.execution.seals import find_seal
from toolkit.engine.execution.store_patience import ask_store
from toolkit.engine.money.affordability import BudgetLeft, explain_over_budget
from toolkit.engine.money.allowance import SpendingLimit
from toolkit.engine.ranking import RankedCandidate, Ranking
from toolkit.engine.request_context import RequestContext
from toolkit.engine.routing.connection_gate import ConnectionGate
from toolkit.engine.routing.provider_pool import ProviderPool
from toolkit.engine.routing.router import find_needs, find_soonest_s, find_table
from toolkit.engine.transport.answers import OutcomeUnknownError
from toolkit.plugins import Operation, ProviderError
from toolkit.store import AccountScope

MAX_BACKOFF_S = 8.0


@dataclass(frozen=True, slots=True)
class ChosenCandidate:
    """The candidate that is called next, and the limits that its call counts against.

    Attributes:
        usd_per_s: US dollars a second of a worker at the endpoint that the job names, if known.
        limits: the daily allowances that the job counts against.
    """

    candidate: RankedCandidate
    connection: Connection
    usd_per_s: Decimal | None
    limits: Sequence[SpendingLimit]


class CandidateSearch:
    """The state of the search of one operation of a job."""

    def __init__(self, core: EngineContext, job_run: JobRun, operation: Operation[Any]) -> None:
        self._core = core
        self._job_run = job_run
        self._operation = operation
        # By the monotonic clock.
        self._deadline = time.monotonic() + core.settings.max_cooldown_wait_s
        self._calls: Counter[str] = Counter()  # by connection
        self._exhausted: set[str] = set()  # not called again
        # Connections whose retries are used up for now, or whose gate was closed. They are called
        # again once no other connection is left.
        self._throttled: set[str] = set()
        # Whether the vendor that was chosen last has another connection that may be chosen.
        self._has_spare = False
        self._is_first = True  # nothing was chosen yet
        self._last_error: ProviderError | None = None
        # The smallest bound of each connection and model that the budgets did not cover.
        self._uncovered: dict[tuple[str | None, str | None], Decimal] = {}

    async def choose(self) -> ChosenCandidate:
        """Choose the connection to call next; if all cool down, wait for the first.

        Raises:
            ProviderError: the last connection's failure; `PROVIDER_UNAVAILABLE` if nothing may be
                called soon enough.
            WorkError: `CREDENTIALS_MISSING`, `BUDGET_EXCEEDED`; `SEAL_BROKEN` if only other models
                than the sealed model could serve it.
        """
        job_run, job = self._job_run, self._job_run.job
        while True:
            providers, limits = await self._find_facts()
            providers = providers.exclude(frozenset(self._exhausted | self._throttled))
            ranking = self._rank(providers, _find_budget_left(job_run, limits))
            seal = await find_seal(self._core, job_run)
            ranking = ranking if seal is None else seal.restrict(ranking)
            if job.routing is None or not self._calls:
                job.routing = ranking
            candidate = ranking.first_choice
            if candidate is not None:
                connection = providers.find_connection(candidate)
                self._has_spare = providers.has_spare(connection, job.options)
                return ChosenCandidate(candidate, connection, providers.usd_per_s, limits)
            soonest_s = find_soonest_s(ranking, providers)
            refusal = explain_over_budget(ranking)
            if soonest_s is None and refusal is not None and self._last_error is None:
                raise WorkError(ErrorCode.BUDGET_EXCEEDED, refusal)
            if seal is not None and not self._has_tried(ranking):
                raise WorkError(
                    ErrorCode.SEAL_BROKEN,
                    f"The work is sealed to {seal}, which its options or connections exclude: allow"
                    " it again, or use a new seal.",
                )
            write_detail(self._core.store, job_run, "waiting_capacity")
            await asyncio.sleep(self._find_wait_s(soonest_s))

    async def _find_facts(self) -> tuple[ProviderPool, Sequence[SpendingLimit]]:
        """Find the providers and allowances as of now, or of an admission just before."""
        core, job_run, admitted = self._core, self._job_run, self._job_run.admitted
        is_first, self._is_first = self._is_first, False
        if is_first and admitted.is_fresh and admitted.providers is not None:
            return admitted.providers, admitted.limits
        find_providers, find_limits = core.directory.find_providers, core.allowances.find_limits
        scope, context = AccountScope(job_run.account_id), RequestContext.of_lease(job_run.lease)
        return (
            await ask_store(core, find_providers, scope, job_run.capability, job_run.job.options),
            await ask_store(core, find_limits, context),
        )

    def _rank(self, providers: ProviderPool, budget_left: BudgetLeft) -> Ranking:
        """Rank the candidates as they are now; often that is the ranking of the admission."""
        job_run, operation = self._job_run, self._operation
        options, admitted = _pin_to_submitted(job_run, providers), job_run.admitted
        table = find_table(job_run.capability, options, providers, find_needs(operation, options))
        if (
            admitted.ranking is not None
            and table is admitted.table
            and operation is admitted.operation
            and not budget_left.is_limited
        ):
            return admitted.ranking
        return table.rank(operation, budget_left)

    def find_retry_delay_s(
        self, error: ProviderError, connection: Connection, gate: ConnectionGate
    ) -> float | None:
        """Count a failed call; return the seconds until the connection is retried, or None.

        After None this search chooses the connection no more, or only once the others are used up
        if the retry budget was empty.
        """
        settings = self._core.settings
        self._calls[connection.id] += 1
        calls = self._calls[connection.id]
        worth = _is_retryable(error, self._operation) and calls <= settings.retries
        delay_s = find_backoff_s(calls - 1, error.retry_after, settings.retry_base_s)
        if not worth or delay_s > settings.retry_cap_s:
            self._exhausted.add(connection.id)
            return None
        if not gate.retry_budget.take():
            self._throttled.add(connection.id)
            return None
        return delay_s

    def note_closed(self, connection: Connection) -> None:
        """Note that a connection's circuit breaker refused a call though the ranking allowed it."""
        self._throttled.add(connection.id)

    def note_unaffordable(self, candidate: RankedCandidate) -> None:
        """Note that the budgets do not cover a candidate that the ranking counted as affordable.

        Spent money does not come back, so the same bound is hopeless; only a smaller bound, with a
        lower cap, may fit. This limits the rounds even if ranking and budgets disagree.

        Raises:
            WorkError: `BUDGET_EXCEEDED` if the candidate was refused before at this bound.
        """
        key, bound = (candidate.connection_id, candidate.model), candidate.reservation_usd
        refused_bound = self._uncovered.get(key)
        if bound is None or (refused_bound is not None and bound >= refused_bound):
            raise WorkError(
                ErrorCode.BUDGET_EXCEEDED,
                "Other calls have spent the budget that this call needs: raise max_cost_usd.",
            )
        self._uncovered[key] = bound

    def should_fall_back(self, error: ProviderError, connection: Connection) -> bool:
        """Record a failure; check whether the search may go on, elsewhere or with a later retry."""
        self._last_error = error
        options = self._job_run.job.options
        is_pinned = options.pin is not None and not self._has_spare
        falls_back = not is_pinned and _may_fall_back(error, self._operation, options)
        return connection.id in self._throttled or falls_back

    def _has_tried(self, ranking: Ranking) -> bool:
        """Check whether a candidate waits for its turn, or a connection was tried."""
        tried = self._exhausted or self._throttled
        return bool(tried) or any(c.connected and c.allowed for c in ranking.candidates)

    def _find_wait_s(self, soonest_s: float | None) -> float:
        """Return the seconds until a candidate may be called; raise if none may in time.

        Connections that were set aside may be chosen again afterwards.
        """
        if self._throttled:
            self._throttled.clear()
            soonest_s = self._core.settings.retry_base_s
        if soonest_s is None:
            raise self._last_error or WorkError(
                ErrorCode.CREDENTIALS_MISSING,
                "No usable connection is left for this call: register one.",
            )
        if time.monotonic() + soonest_s > self._deadline:
            raise self._last_error or ProviderError(
                ErrorCode.PROVIDER_UNAVAILABLE,
                f"Every usable connection is failing; the next call is possible in"
                f" {soonest_s:.1f} s.",
            )
        # With jitter, so that waiting calls do not all start at once.
        return soonest_s + random.uniform(0, 0.1 * soonest_s)  # noqa: S311 - no secret


def _find_budget_left(job_run: JobRun, limits: Sequence[SpendingLimit]) -> BudgetLeft:
    rooms = [budget.available for budget in job_run.budgets if budget.available is not None]
    return BudgetLeft(is_limited=bool(rooms or limits), available=min(rooms, default=None))


def _pin_to_submitted(job_run: JobRun, providers: ProviderPool) -> Options:
    """Return a job's options, restricted to the connection whose vendor may still work on the job.

    Another connection does not know the submission: the work would be done and billed again. The
    options are unchanged if nothing was submitted or that connection is gone.
    """
    options, pin = job_run.job.options, job_run.job.connection_id
    if job_run.vendor_job_id is None or pin is None or pin in providers.failed_ids:
        return options
    is_known = any(
        connection.id == pin for pool in providers.connections.values() for connection in pool
    )
    return options.model_copy(update={"provider": pin}) if is_known else options


def _is_retryable(error: ProviderError, operation: Operation[Any]) -> bool:
    """Check whether the same connection may be called again (decisions, "Unknown outcome").

    Marks an error of unknown outcome as final if the operation must not be repeated.
    """
    if isinstance(error, OutcomeUnknownError) and not operation.repeatable:
        error.retryable = False
    return error.retryable


def _may_fall_back(error: ProviderError, operation: Operation[Any], options: Options) -> bool:
    """Check whether another vendor may be tried after an error.

    A vendor's rejection of the input falls back only if the options ask for it.
    """
    if isinstance(error, OutcomeUnknownError) and not operation.repeatable:
        return False
    if error.code is ErrorCode.REPLAY_MISS:
        return False  # another vendor's answer would be a different replay
    return options.fallback_on_rejection or error.code is not ErrorCode.PROVIDER_REJECTED


def find_backoff_s(retry: int, retry_after: float | None, base_s: float) -> float:
    """Return the seconds to wait: the vendor's value, else exponential with full jitter."""
    if retry_after is not None:
        return retry_after
    return random.uniform(0, min(MAX_BACKOFF_S, base_s * 2**retry))  # noqa: S311 - no secret
