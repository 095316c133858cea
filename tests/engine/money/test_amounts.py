"""Amounts: sums are exact, and values of the wire and the store are rounded once."""

from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from toolkit.contract.money import from_wire_usd, sum_usd, to_wire_usd
from toolkit.engine.money.amounts import from_nano_usd, sum_costs, to_nano_usd

# Amounts on the wire: up to a million dollars, in billionths, as the nearest float.
NUMBERS = st.integers(0, 10**15).map(lambda nano: nano / 10**9)


@given(st.lists(NUMBERS, max_size=1000))
def test_sums_exactly_and_rounds_once(numbers: list[float]) -> None:
    """Given costs on the wire, then their sum is the exact sum as the nearest float."""
    exact = sum((Fraction(str(number)) for number in numbers), Fraction(0))
    total = sum_costs(from_wire_usd(number) for number in numbers)
    assert total is not None
    assert to_wire_usd(total) == sum_usd(numbers) == float(exact)
    assert to_nano_usd(total, ROUND_HALF_UP) == round(exact * 10**9)


@given(NUMBERS)
def test_reads_and_writes_wire_amounts_unchanged(number: float) -> None:
    """Given a number of the wire, then the exact amount has the same digits, both ways."""
    amount = from_wire_usd(number)
    assert Fraction(amount) == Fraction(str(number))
    assert to_wire_usd(amount) == number


@given(st.integers(0, 10**18))
def test_stores_billionths_and_rounds_reservations_up(nano: int) -> None:
    """Given billionths of a dollar, then they are stored exactly, and smaller parts round up."""
    assert to_nano_usd(from_nano_usd(nano), ROUND_CEILING) == nano
    assert to_nano_usd(from_nano_usd(nano) + Decimal("1e-10"), ROUND_CEILING) == nano + 1


@given(st.lists(st.one_of(st.none(), st.decimals(0, 1000, places=9)), max_size=20))
def test_a_sum_with_an_unknown_cost_is_unknown(costs: list[Decimal | None]) -> None:
    """Given costs, then their sum is None exactly if a cost is None."""
    assert (sum_costs(costs) is None) == (None in costs)
