"""Cost estimates of nodes before they run: one function for plans, tasks and workflows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from toolkit.contract.jobs import Candidate, Options
from toolkit.contract.money import format_usd
from toolkit.contract.plans import CostRange
from toolkit.engine.affordability import Money, explain_over_budget
from toolkit.engine.backends import Backends
from toolkit.engine.registry import max_length_of, validate_input
from toolkit.engine.router import route, servable
from toolkit.plugins import Capability, Model, Operation, Vendor
from toolkit.plugins.pricing import bound_usd, price

# Upstream text is not known before it has run. It is expected to be this many characters, may be
# a single one, or as many as its field takes, of three bytes each, the most of nearly all scripts.
EXPECTED_CHARACTERS = 600
USUAL_CHARACTER, WIDE_CHARACTER = "x", "語"
SOME_ARTIFACT = "art_" + "0" * 26
NOTHING = Decimal(0)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The US dollars that a node may cost; none where unknown or not connected.

    Attributes:
        low: the least that it can be billed, by the cheapest of those who may be called.
        expected: what its first choice is expected to bill.
        high: the most that one call of the dearest of them can come to.
        refusal: why the budgets allow no call, if so.
    """

    low: Decimal | None = None
    expected: Decimal | None = None
    high: Decimal | None = None
    refusal: str | None = None


FREE = Estimate(NOTHING, NOTHING, NOTHING)


@dataclass(frozen=True, slots=True)
class Choice:
    """The candidates for a node, the first choice first; and why there are none, if so."""

    kept: tuple[tuple[Candidate, Vendor, Model | None], ...] = ()
    refusal: str | None = None


Choices = dict[tuple[str, Options], Choice]


def estimate_node(
    capability: Capability,
    given: Mapping[str, object],
    fillable: frozenset[str],
    options: Options,
    backends: Backends,
    money: Money,
    choices: Choices | None = None,
) -> Estimate:
    """Estimate the cost of one node with the router that will place it.

    Args:
        capability: the node's capability.
        given: its input.
        fillable: the fields that upstream fills where the input leaves them out.
        options: its options.
        backends: the vendors, models and connections to choose from.
        money: what the budgets leave.
        choices: a cache of the candidates without a budget: nodes that differ in their input alone
            share the first one's choice.
    """
    if capability.operation is None:
        return FREE
    if not capability.operation_required and not servable(capability, options, backends):
        return FREE  # it runs without a vendor
    open_fields = fillable - given.keys()
    usual = _operation(capability, given, open_fields, EXPECTED_CHARACTERS, USUAL_CHARACTER)
    if usual is None:
        return FREE
    least, most = usual, usual
    if open_fields:
        least = _operation(capability, given, open_fields, 1, USUAL_CHARACTER) or usual
        most = _operation(capability, given, open_fields, None, WIDE_CHARACTER) or usual
    key = (capability.name, options)
    choice = None if choices is None or money.limited else choices.get(key)
    if choice is None:
        choice = _choose(capability, options, usual, least, backends, money)
        if choices is not None:
            choices[key] = choice
    if not choice.kept:
        # An optional call is left out where a budget does not cover it.
        return Estimate(refusal=choice.refusal) if capability.operation_required else FREE
    found = _estimate(choice, least, usual, most)
    if capability.operation_required or found.low is None:
        return found
    return replace(found, low=NOTHING)  # it may need no call at all


def _choose(
    capability: Capability,
    options: Options,
    usual: Operation[Any],
    least: Operation[Any],
    backends: Backends,
    money: Money,
) -> Choice:
    """Choose who may be called, now or once their circuits close again, the first choice first."""
    vendors = {vendor.id: vendor for vendor in backends.vendors}
    models = {
        (provider, model.id): model
        for provider, offered in backends.models.items()
        for model in offered
    }
    for operation in (usual, least):
        routing = route(capability, options, operation, backends, money)
        kept = [c for c in routing.candidates if c.connected and c.allowed and c.affordable]
        if kept or least is usual:
            break
    told = tuple(
        (one, vendors[one.provider], models.get((one.provider, one.model or ""))) for one in kept
    )
    return Choice(told, None if kept else explain_over_budget(routing))


def _estimate(
    choice: Choice, least: Operation[Any], usual: Operation[Any], most: Operation[Any]
) -> Estimate:
    """Estimate what the candidates bill for the least, the usual and the most input."""
    figures: list[tuple[Decimal | None, Decimal | None, Decimal | None]] = []
    for one, vendor, model in choice.kept:
        if one.estimated_cost_usd is None or model is None:
            figures.append((None, None, None))  # not known in advance
        elif not one.estimated_cost_usd:
            # Free, or billed by the hour whatever the call.
            bounded = None if one.reservation_usd is None else NOTHING
            figures.append((NOTHING, NOTHING, bounded))
        else:
            figures.append(
                (
                    price(model, least.least_units()),
                    price(model, usual.units()),
                    bound_usd(vendor, model, most),
                )
            )
    lows, _, highs = zip(*figures, strict=True)
    expected = figures[0][1]
    low = min((low for low in lows if low is not None), default=None)
    high = None if None in highs else max(high for high in highs if high is not None)
    return Estimate(None if expected is None else low, expected, high)


def _operation(
    capability: Capability,
    given: Mapping[str, object],
    open_fields: Iterable[str],
    characters: int | None,
    character: str,
) -> Operation[Any] | None:
    """Build the operation a vendor would get if each open text had so many characters.

    Args:
        capability: the node's capability.
        given: its input.
        open_fields: the fields that upstream fills.
        characters: how many; none for as many as the field takes.
        character: the one that the texts are made of.
    """
    filled = dict(given)
    for field in open_fields:
        if capability.takes[field].form == "artifact":
            filled[field] = SOME_ARTIFACT
            continue
        longest = max_length_of(capability.input_model, field)
        wanted = characters if characters is not None else longest or EXPECTED_CHARACTERS
        filled[field] = character * min(wanted, longest or wanted)
    value = validate_input(capability, filled, frozenset(), "input")
    return capability.estimate(value)


def sum_up(estimates: Iterable[Estimate]) -> CostRange:
    """Add up the estimates of nodes; an unknown figure makes the sum unknown."""
    every = list(estimates)
    return CostRange(
        low=_sum(one.low for one in every),
        expected=_sum(one.expected for one in every),
        high=_sum(one.high for one in every),
    )


def _sum(amounts: Iterable[Decimal | None]) -> float | None:
    known = list(amounts)
    if None in known:
        return None
    return float(sum((amount for amount in known if amount is not None), NOTHING))


def explain_unaffordable(estimates: Mapping[str, Estimate], limit: float | None) -> str | None:
    """Explain why nodes cannot run within a limit, whatever happens; none if they may.

    Each call is bounded when it is made, so work that is only expected to cost more may start.
    """
    for node_id, one in estimates.items():
        if one.refusal is not None:
            return f"Node `{node_id}`: {one.refusal}"
    low = _sum(one.low or NOTHING for one in estimates.values())
    if limit is None or low is None or Decimal(str(low)) <= Decimal(str(limit)):
        return None
    return (
        f"It costs at least {format_usd(low, exact=True)}, and max_cost_usd is "
        f"{format_usd(limit, exact=True)}; raise it, or ask for less."
    )
