"""Check whether budgets cover the cost of a call: pure functions, called for each candidate."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from functools import partial
from typing import Any

from toolkit.contract.jobs import Options
from toolkit.contract.money import ZERO_USD, format_usd, from_wire_usd
from toolkit.engine.ranking import RankedCandidate, Ranking
from toolkit.plugins import Model, Operation, TextRequest, Vendor
from toolkit.plugins.pricing import STANDARD_TIER, calculate_max_cost, calculate_time_cost

# In tokens: a shorter answer is useless, however little a budget leaves.
MIN_TOKEN_CAP = 256
# For the message about candidates that a budget excludes.
MAX_REASONS = 3
UNPRICED_TOKENS = "has no known token price, so no budget can bound its cost"
UNPRICED_WORKER = (
    "runs at an endpoint that was created on a GPU without a known price, so no budget can bound"
    " its cost"
)


@dataclass(frozen=True, slots=True)
class BudgetLeft:
    """The amount that the budgets over a call leave.

    Attributes:
        is_limited: whether any budget applies; if so, a call without a known bound is refused.
        available: US dollars that may still be reserved once calls in flight have settled; None
            without a limit.
    """

    is_limited: bool = False
    available: Decimal | None = None

    @classmethod
    def of(cls, options: Options) -> "BudgetLeft":
        """Make the budget of `options.max_cost_usd`, of which nothing is spent yet."""
        return cls().restrict(from_wire_usd(options.max_cost_usd))

    def restrict(self, limit: Decimal | None) -> "BudgetLeft":
        """Return the same amount under one more limit."""
        if limit is None:
            return self
        available = limit if self.available is None else min(self.available, limit)
        return BudgetLeft(is_limited=True, available=available)

    def covers(self, amount: Decimal | None) -> bool:
        """Check whether the budget covers a call's maximum cost.

        Without limits any cost is covered; under a limit an unknown cost (None) is not.
        """
        if amount is None:
            return not self.is_limited
        return self.available is None or amount <= self.available


@dataclass(frozen=True, slots=True)
class CostBound:
    """The maximum cost of a candidate, and the cap on its answer that ensures it.

    Attributes:
        usd: maximum cost in US dollars; None if unknown.
        max_tokens: lowered cap on the answer's length; None if it was not lowered.
    """

    usd: Decimal | None
    max_tokens: int | None = None


def find_bound(
    vendor: Vendor,
    model: Model | None,
    options: Options,
    operation: Operation[Any] | None,
    budget_left: BudgetLeft,
    rate: Decimal | None,
    max_cost: Decimal | None,
    service_tier: str = STANDARD_TIER,
) -> CostBound:
    """Find the maximum cost of a call; if the budget is too small, try a shorter answer.

    The cap on the answer is lowered only if the caller did not set it. The cost is 0 without an
    operation, and on a compute, which is billed by the hour.

    Args:
        vendor: vendor to call.
        model: model to call.
        options: options that name the place where the work is to run.
        operation: operation to request.
        budget_left: amount that the budgets leave.
        rate: US dollars a second of a worker at the endpoint that the options name.
        max_cost: maximum cost with its present cap; None if unknown.
        service_tier: service tier whose prices bound the cost.
    """
    placed = vendor.runs_at_named_place(model)
    if operation is None or (placed and options.compute_id is not None):
        return CostBound(ZERO_USD)
    if placed and options.endpoint_id is not None:
        time = vendor.endpoint_time
        if time is None or rate is None:
            return CostBound(None)
        return CostBound(calculate_time_cost(rate, time.max_s, ROUND_CEILING))
    bound = vendor.bounds.get(type(operation))
    if (
        max_cost is None
        or budget_left.covers(max_cost)
        or model is None
        or bound is None
        or model.reasons
        or not isinstance(operation, TextRequest)
        or not (operation.cap_may_fall and bound.cap_holds(model))
    ):
        return CostBound(max_cost)
    find_cost = partial(_find_cost_with_cap, vendor, model, operation, service_tier)
    room = budget_left.available or ZERO_USD
    return _lower_cap(find_cost, operation.max_tokens, room) or CostBound(max_cost)


def _find_cost_with_cap(
    vendor: Vendor, model: Model, operation: TextRequest, service_tier: str, cap: int
) -> Decimal | None:
    return calculate_max_cost(vendor, model, replace(operation, max_tokens=cap), service_tier)


def _lower_cap(
    find_cost: Callable[[int], Decimal | None], max_tokens: int, room: Decimal
) -> CostBound | None:
    """Find the longest answer that `room` covers; None if that is too short to be useful.

    The maximum cost of a call is linear in the cap, so two points determine it.
    """
    min_cost, next_cost = find_cost(MIN_TOKEN_CAP), find_cost(MIN_TOKEN_CAP + 1)
    if min_cost is None or next_cost is None or min_cost > room or max_tokens <= MIN_TOKEN_CAP:
        return None
    cap = MIN_TOKEN_CAP
    if next_cost > min_cost:
        cap += int((room - min_cost) / (next_cost - min_cost))
    cap = min(cap, max_tokens)
    usd = find_cost(cap)
    while usd is not None and usd > room and cap > MIN_TOKEN_CAP:  # amounts are rounded
        cap -= 1
        usd = find_cost(cap)
    return CostBound(usd, cap)


def explain_refusal(
    cost_bound: CostBound,
    estimate: Decimal | None,
    budget_left: BudgetLeft,
    operation: Operation[Any] | None,
    *,
    trusted: bool,
    placed: bool,
) -> str:
    """Explain why a budget excludes a candidate.

    Args:
        cost_bound: maximum cost of the candidate.
        estimate: expected cost, in US dollars.
        budget_left: amount that the budgets leave.
        operation: operation to request.
        trusted: whether it has never billed more than its bound.
        placed: whether it is to run at an endpoint.
    """
    if not trusted:
        return "billed more than its bound before, so no budget can bound its cost"
    if cost_bound.usd is not None:
        available = format_usd(budget_left.available, exact=True)
        return f"may cost up to {format_usd(cost_bound.usd, exact=True)}, and {available} is left"
    if placed:
        return UNPRICED_WORKER
    if estimate is None and isinstance(operation, TextRequest):
        return UNPRICED_TOKENS
    unknown = "price" if estimate is None else "bound"
    return f"has no known {unknown}, so no budget can bound its cost"


def explain_over_budget(routing: Ranking) -> str | None:
    """Explain which budget excludes every candidate, and suggest a fix; None if no budget does."""
    candidates = [c for c in routing.candidates if c.connected and c.allowed]
    if not candidates or any(c.affordable for c in candidates):
        return None
    refusals = [f"{c.provider} ({c.model}) {c.reason}" for c in candidates]
    remedy = _suggest_remedy(candidates)
    return (
        f"No provider fits the budget: {'; '.join(refusals[:MAX_REASONS])}. To continue, {remedy}."
    )


def _suggest_remedy(candidates: Sequence[RankedCandidate]) -> str:
    if any(c.reservation_usd is not None for c in candidates):
        return "raise max_cost_usd"
    remedies = []
    for candidate in candidates:
        if candidate.reason == UNPRICED_TOKENS:
            remedies.append(
                f"set its price in toolkit.toml ([vendors.{candidate.provider}.prices."
                f"{json.dumps(candidate.model)}], input_tokens and output_tokens, in US dollars per"
                " million; 0 for your own server)"
            )
        elif candidate.reason == UNPRICED_WORKER:
            remedies.append(
                "create the endpoint again on a GPU that has a price in client.catalog.gpus()"
            )
    unlimited = "leave out max_cost_usd and use a key without an allowance"
    return ", or ".join([*dict.fromkeys(remedies[:1]), unlimited])
