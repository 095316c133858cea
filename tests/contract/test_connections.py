"""Connections: tested as they are made, and all of one vendor's weighed for each call."""

from typing import Any

import pytest

from tests.contract.raw_http import RawCaller, open_door
from toolkit import Client
from toolkit.sandbox import Fault
from toolkit.settings import Settings

LINE = {"objective": "A line about tea"}
POINTER = {"provider": "openai", "connection_type": "environment"}
CONNECTIONS = "/v1/providers/connections"


@pytest.mark.parametrize(
    ("variable", "code"),
    [
        pytest.param("OPENAI_API_KEY", None, id="works"),
        pytest.param("MINIMAX_API_KEY", "PROVIDER_AUTH_FAILED", id="refused"),
        pytest.param("NOT_THERE", "SECRET_UNRESOLVED", id="leads-nowhere"),
        pytest.param("PATH", "SECRET_UNRESOLVED", id="not-allowed"),
    ],
)
def test_a_new_connection_is_tested(service: RawCaller, variable: str, code: str | None) -> None:
    """Given a pointer, then it is kept, and the answer alone warns of what is wrong with it."""
    caller = service.sign_up()
    made = caller.create(CONNECTIONS, {**POINTER, "secret_ref": variable})["data"]
    assert (made["warning"] and made["warning"]["code"]) == code
    assert caller.get(f"{CONNECTIONS}/{made['id']}")["data"]["warning"] is None


def test_a_warning_tells_nothing_of_other_variables(service: RawCaller) -> None:
    """Given a variable that is set and not allowed, then it is answered as one that is not set."""
    caller = service.sign_up()
    told = [
        caller.create(CONNECTIONS, {**POINTER, "secret_ref": name})["data"]["warning"]
        for name in ("PATH", "NOT_THERE", "TOOLKIT_API_KEY")
    ]
    assert told[0] == told[1] == told[2]


def test_a_vendor_that_does_not_answer_is_a_warning(
    settings: Settings,
) -> None:
    """Given a vendor that keeps silent, then the connection is made without waiting for it."""
    short = settings.model_copy(update={"connection_test_s": 0.01})
    with open_door(short) as door:
        caller = door.sign_up()
        door.faults.add(Fault("openai", delay_ms=600_000, times=None))
        made = caller.create(CONNECTIONS, {**POINTER, "secret_ref": "OPENAI_API_KEY"})["data"]
    assert made["warning"]["code"] == "PROVIDER_TIMEOUT"


def test_the_client_shows_the_warning(bare: Client) -> None:
    """Given a key that its vendor refuses, then the handle says so."""
    made = bare.connections.create("openai", "environment", "MINIMAX_API_KEY")
    assert made.warning
    assert "warning: PROVIDER_AUTH_FAILED" in repr(made)
    assert bare.connections.create("openai", "environment", "OPENAI_API_KEY").warning is None


@pytest.mark.parametrize("variable", ["MINIMAX_API_KEY", "NOT_THERE"])
def test_a_broken_newest_connection_shadows_nothing(bare: Client, variable: str) -> None:
    """Given a good connection, a newer broken one and another vendor, then the good one serves."""
    good = bare.connections.create("openai", "environment", "OPENAI_API_KEY").id
    bare.connections.create("anthropic", "environment", "ANTHROPIC_API_KEY")
    broken = bare.connections.create("openai", "environment", variable).id
    chosen: list[dict[str, Any]] = [{}, {"optimize_for": "cost"}, {"provider": "openai"}]
    for options in chosen:
        run = bare.runs.create("llm.generate", LINE, **options).wait(progress=False)
        assert run.provider != "openai" or run.record.connection_id == good
        shown = bare.route("llm.generate", LINE, **options).candidates
        mine = [c for c in shown if c.provider == "openai" and c.allowed]
        assert {c.connection_id for c in mine} == {good, broken}
        order = [c.connection_id for c in mine]
        assert order.index(good) < order.index(broken)
        assert run.record.routing is not None
        recorded = {c.connection_id for c in run.record.routing.candidates}
        assert {good, broken} <= recorded
