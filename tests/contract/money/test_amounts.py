"""Amounts of money as people read them: without exponents, and never rounded to zero."""

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

EXPONENT = re.compile(r"\d[eE][+-]?\d")


@given(st.decimals(min_value=0, max_value=10**9, allow_nan=False, places=12))
def test_an_amount_is_plain_digits(amount: Decimal) -> None:
    """Given any amount, then its text has 3 significant digits, or all of them if exact."""
    text = format_usd(amount)
    assert re.fullmatch(r"\$\d+(\.\d*[1-9])?", text)
    value = Decimal(text[1:])
    assert abs(value - amount) <= amount / 200
    assert (value == 0) == (amount == 0)
    assert Decimal(format_usd(amount, exact=True)[1:]) == amount


def test_names_a_tiny_budget_in_full(client: Client) -> None:
    """Given a budget of a ten-millionth, when it rejects a run, then the message is exact."""
    with pytest.raises(RequestError, match=r"^BUDGET_EXCEEDED:") as error:
        client.runs.create("llm.generate", {"objective": "x"}, max_cost_usd=1e-07)
    assert error.value.code.http_status == 402
    assert "$0.0000001" in error.value.message
    assert "$0.000000 " not in f"{error.value.message} "
    assert not EXPONENT.search(error.value.message)


def test_shows_prices_in_plain_digits(client: Client) -> None:
    """Given list prices of a millionth and less, then no view of them has an exponent."""
    models = client.catalog.models()
    assert any(0 < usd < 1e-4 for model in models for usd in model.record.prices_usd.values())
    rows = [model.to_dict() for model in models]
    for html in (
        models._repr_html_(),
        *map(render_views, models),
        widget_html.render_table(rows, ["provider", "model", "prices_usd"]),
    ):
        assert not EXPONENT.search(re.sub(r"<[^>]*>", " ", html))
    assert "$" in render_views(models[0])


def test_shows_a_tiny_bill(client: Client) -> None:
    """Given one short call, then the bill shows its cost and not $0.0000."""
    run = client.runs.create("llm.generate", {"objective": "Hi"}, provider="openai").wait()
    bill = client.billing.get()
    assert bill.total_usd == pytest.approx(run.cost_usd)
    assert format_usd(bill.total_usd) in repr(bill)
