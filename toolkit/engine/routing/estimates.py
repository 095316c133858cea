"""Cost estimates of nodes before they run: one function for plans, tasks and workflows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from toolkit.contract.jobs import Options
from toolkit.contract.money import ZERO_USD, format_usd, to_wire_usd
from toolkit.contract.plans import CostRange
from toolkit.engine.money.affordability import BudgetLeft, explain_over_budget
from toolkit.engine.money.amounts import sum_costs
from toolkit.engine.ranking import RankedCandidate
from toolkit.engine.routing.provider_pool import ProviderPool
from toolkit.engine.routing.registry import find_max_length, validate_input
from toolkit.engine.routing.router import is_servable, route
from toolkit.plugins import Capability, Model, Operation, Vendor
from toolkit.plugins.pricing import calculate_cost, calculate_max_cost

# Upstream text is not known before it has run. It is expected to be this many characters. It may be
# a single character, or fill its field at three bytes each, the most of nearly all scripts.
EXPECTED_CHARS = 600
USUAL_CHAR, WIDE_CHAR = "x", "語"
PLACEHOLDER_ARTIFACT_ID = "art_" + "0" * 26


@dataclass(frozen=True, slots=True)
class Estimate:
    """The US dollars that a node may cost; None if unknown or not connected.

    Attributes:
        low: the minimum bill, by the cheapest candidate that may be called.
        expected: the expected bill of its first choice.
        high: the maximum bill of one call of the most expensive candidate.
        refusal: the reason why the budgets allow no call, or None.
    """

    low: Decimal | None = None
    expected: Decimal | None = None
    high: Decimal | None = None
    refusal: str | None = None


FREE_ESTIMATE = Estimate(ZERO_USD, ZERO_USD, ZERO_USD)
UNKNOWN_ESTIMATE = Estimate()


PricedCandidate = tuple[RankedCandidate, Vendor, Model | None]


@dataclass(frozen=True, slots=True)
class ProviderChoice:
    """The candidates for a node, the first choice first; or the reason why there are none."""

    candidates: tuple[PricedCandidate, ...] = ()
    refusal: str | None = None


ProviderChoices = dict[tuple[str, Options, frozenset[str]], ProviderChoice]


def estimate_node(
    capability: Capability,
    node_input: Mapping[str, object],
    fillable: frozenset[str],
    options: Options,
    providers: ProviderPool,
    budget_left: BudgetLeft,
    choices: ProviderChoices | None = None,
    *,
    with_range: bool = True,
) -> Estimate:
    """Estimate the cost of one node by the router that will choose its provider.

    Args:
        capability: the node's capability.
        node_input: the node's input.
        fillable: the fields that upstream fills if the input leaves them out.
        options: the node's options.
        providers: the vendors, models and connections to choose from.
        budget_left: the amounts that the budgets leave.
        choices: a cache of the candidates without a budget: nodes of a capability with the
            same options and needs share the first node's choice.
        with_range: whether to estimate the minimum and the maximum, too; otherwise they are None.
            The maximum has texts of the greatest length to measure.
    """
    if capability.operation is None:
        return FREE_ESTIMATE
    if not capability.operation_required and not is_servable(capability, options, providers):
        return FREE_ESTIMATE  # it runs without a vendor
    open_fields = fillable - node_input.keys()
    usual = build_usual_operation(capability, node_input, fillable)
    if usual is None:
        return FREE_ESTIMATE
    smallest, largest = usual, usual
    if open_fields and (with_range or budget_left.is_limited):
        smallest = _build_operation(capability, node_input, open_fields, 1, USUAL_CHAR) or usual
    if open_fields and with_range:
        largest = _build_operation(capability, node_input, open_fields, None, WIDE_CHAR) or usual
    key = (capability.name, options, usual.abilities)
    choice = None if choices is None or budget_left.is_limited else choices.get(key)
    if choice is None:
        choice = _choose_providers(capability, options, usual, smallest, providers, budget_left)
        if choices is not None:
            choices[key] = choice
    if not choice.candidates:
        # An optional call is left out if a budget does not cover it.
        return Estimate(refusal=choice.refusal) if capability.operation_required else FREE_ESTIMATE
    if not with_range:
        return Estimate(expected=_calculate_expected(choice.candidates[0], usual))
    estimate = _estimate_range(choice, smallest, usual, largest)
    if capability.operation_required or estimate.low is None:
        return estimate
    return replace(estimate, low=ZERO_USD)  # it may need no call at all


def _choose_providers(
    capability: Capability,
    options: Options,
    usual: Operation[Any],
    smallest: Operation[Any],
    providers: ProviderPool,
    budget_left: BudgetLeft,
) -> ProviderChoice:
    """Choose the candidates that may be called now, or once their circuit breakers close.

    The first choice comes first.
    """
    vendors = {vendor.id: vendor for vendor in providers.vendors}
    models = {
        (provider, model.id): model
        for provider, offers in providers.models.items()
        for model in offers
    }
    for operation in (usual, smallest):
        routing = route(capability, options, operation, providers, budget_left)
        eligible = [c for c in routing.candidates if c.connected and c.allowed and c.affordable]
        if eligible or smallest is usual:
            break
    candidates = tuple(
        (
            candidate,
            vendors[candidate.provider],
            models.get((candidate.provider, candidate.model or "")),
        )
        for candidate in eligible
    )
    return ProviderChoice(candidates, None if eligible else explain_over_budget(routing))


def _estimate_range(
    choice: ProviderChoice, smallest: Operation[Any], usual: Operation[Any], largest: Operation[Any]
) -> Estimate:
    """Estimate the candidates' bills for the least, the usual and the most input."""
    figures: list[tuple[Decimal | None, Decimal | None]] = []
    for candidate, vendor, model in choice.candidates:
        if candidate.estimated_cost_usd is None or model is None:
            figures.append((None, None))  # not known in advance
        elif not candidate.estimated_cost_usd:
            # Free, or billed by the hour regardless of the call.
            figures.append((ZERO_USD, None if candidate.reservation_usd is None else ZERO_USD))
        else:
            lowest = calculate_cost(model, smallest.least_units())
            figures.append((lowest, calculate_max_cost(vendor, model, largest)))
    lows, highs = zip(*figures, strict=True)
    expected = _calculate_expected(choice.candidates[0], usual)
    low = min((low for low in lows if low is not None), default=None)
    high = None if None in highs else max(high for high in highs if high is not None)
    return Estimate(None if expected is None else low, expected, high)


def _calculate_expected(priced_candidate: PricedCandidate, usual: Operation[Any]) -> Decimal | None:
    """Calculate a candidate's expected bill; return None if it is not known in advance."""
    candidate, _, model = priced_candidate
    if candidate.estimated_cost_usd is None or model is None:
        return None
    if not candidate.estimated_cost_usd:
        return ZERO_USD  # free, or billed by the hour regardless of the call
    return calculate_cost(model, usual.units())


def build_usual_operation(
    capability: Capability, node_input: Mapping[str, object], fillable: frozenset[str]
) -> Operation[Any] | None:
    """Build the operation of a node whose upstream results are of the usual size."""
    open_fields = fillable - node_input.keys()
    return _build_operation(capability, node_input, open_fields, EXPECTED_CHARS, USUAL_CHAR)


def _build_operation(
    capability: Capability,
    node_input: Mapping[str, object],
    open_fields: Iterable[str],
    characters: int | None,
    character: str,
) -> Operation[Any] | None:
    """Build the operation that a vendor would get if each open text had this many characters.

    Args:
        capability: the node's capability.
        node_input: the node's input.
        open_fields: the fields that upstream fills.
        characters: number of characters; None for as many as the field takes.
        character: the character that the texts consist of.
    """
    full_input = dict(node_input)
    for field in open_fields:
        if capability.accepts[field].mode == "artifact":
            full_input[field] = PLACEHOLDER_ARTIFACT_ID
            continue
        longest = find_max_length(capability.input_model, field)
        if capability.accepts[field].mode == "artifacts":
            full_input[field] = [PLACEHOLDER_ARTIFACT_ID] * (1 if characters else longest or 1)
            continue
        length = characters if characters is not None else longest or EXPECTED_CHARS
        full_input[field] = character * min(length, longest or length)
    value = validate_input(capability, full_input, frozenset(), "input")
    return capability.estimate(value)


def sum_estimates(estimates: Iterable[Estimate]) -> CostRange:
    """Add up the estimates of nodes; an unknown figure makes the sum unknown."""
    node_estimates = list(estimates)
    return CostRange(
        low=to_wire_usd(sum_costs(estimate.low for estimate in node_estimates)),
        expected=to_wire_usd(sum_costs(estimate.expected for estimate in node_estimates)),
        high=to_wire_usd(sum_costs(estimate.high for estimate in node_estimates)),
    )


def explain_unaffordable(estimates: Mapping[str, Estimate], limit: Decimal | None) -> str | None:
    """Explain why a limit or a budget excludes nodes in any case; return None if it does not.

    Each call is bounded when it is made, so work that is only expected to cost more may start.
    """
    for node_id, estimate in estimates.items():
        if estimate.refusal is not None:
            return f"Node `{node_id}`: {estimate.refusal}"
    low = sum((estimate.low or ZERO_USD for estimate in estimates.values()), ZERO_USD)
    if limit is None or low <= limit:
        return None
    return (
        f"The work costs at least {format_usd(low, exact=True)}, and max_cost_usd is "
        f"{format_usd(limit, exact=True)}: raise it, or reduce the work."
    )
