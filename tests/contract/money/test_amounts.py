"""Amounts of money as people read them: never in exponents, and never rounded to nothing."""

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.views import render_views
from toolkit import Client, RequestError
from toolkit.contract.money import format_usd
from toolkit.notebook import widget_html

pytestmark = [pytest.mark.embedded, pytest.mark.sqlite("other tests have its statements")]

TINY = 1e-07
EXPONENT = re.compile(r"\d[eE][+-]?\d")


@given(st.decimals(min_value=0, max_value=10**9, allow_nan=False, places=12))
def test_an_amount_is_read_back_as_what_it_is(amount: Decimal) -> None:
    """Given any amount, then its text is plain, tells it to 3 digits, and exactly where asked."""
    text = format_usd(amount)
    assert re.fullmatch(r"\$\d+(\.\d*[1-9])?", text)
    read = Decimal(text[1:])
    assert abs(read - amount) <= amount / 200
    assert (read == 0) == (amount == 0)
    assert Decimal(format_usd(amount, exact=True)[1:]) == amount


def test_a_tiny_budget_is_named_in_full(client: Client) -> None:
    """Given a budget of a ten-millionth, when it refuses, then the message can be compared."""
    with pytest.raises(RequestError) as refused:
        client.runs.create("llm.generate", {"objective": "x"}, max_cost_usd=TINY)
    assert (refused.value.code.name, refused.value.code.http_status) == ("BUDGET_EXCEEDED", 402)
    assert "$0.0000001" in refused.value.message
    assert "$0.000000 " not in f"{refused.value.message} "
    assert not EXPONENT.search(refused.value.message)


def test_prices_are_shown_in_plain_digits(client: Client) -> None:
    """Given list prices of a millionth and less, then no view of them has an exponent."""
    models = client.catalog.models()
    assert any(0 < usd < 1e-4 for one in models for usd in one.record.prices_usd.values())
    rows = [one.to_dict() for one in models]
    for shown in (
        models._repr_html_(),
        *(render_views(one) for one in models),
        widget_html.render_table(rows, ["provider", "model", "prices_usd"]),
    ):
        assert not EXPONENT.search(re.sub(r"<[^>]*>", " ", shown))
    assert "$" in render_views(models[0])


def test_a_bill_of_next_to_nothing_says_so(client: Client) -> None:
    """Given one short call, then the bill's line shows what it cost and not $0.0000."""
    run = client.runs.create("llm.generate", {"objective": "Hi"}, provider="openai").wait()
    bill = client.billing.get()
    assert bill.total_usd == pytest.approx(run.cost_usd)
    assert format_usd(bill.total_usd) in repr(bill)
