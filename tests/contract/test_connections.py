"""Connections: each is tested when it is created, and all of a vendor's are ranked for a call."""

from typing import Any

import pytest

from tests.contract.raw_http import POINTER, Json, RawCaller, open_door
from toolkit import Client, RequestError
from toolkit.sandbox import Fault
from toolkit.settings import Settings

LINE = {"objective": "A line about tea"}
CONNECTIONS = "/v1/providers/connections"


def connect(caller: RawCaller, variable: str) -> Json:
    """Create a connection to openai by a variable."""
    return dict(caller.create(CONNECTIONS, {**POINTER, "secret_ref": variable})["data"])


@pytest.mark.parametrize(
    ("variable", "code"),
    [
        pytest.param("OPENAI_API_KEY", None, id="valid"),
        pytest.param("MINIMAX_API_KEY", "PROVIDER_AUTH_FAILED", id="refused"),
        pytest.param("NOT_THERE", "SECRET_UNRESOLVED", id="unset"),
        pytest.param("PATH", "SECRET_UNRESOLVED", id="not allowed"),
    ],
)
def test_tests_a_new_connection(service: RawCaller, variable: str, code: str | None) -> None:
    """Given a pointer, then it is stored, and the response to its creation alone has a warning."""
    caller = service.sign_up()
    connection = connect(caller, variable)
    assert (connection["warning"] and connection["warning"]["code"]) == code
    assert caller.get(f"{CONNECTIONS}/{connection['id']}")["data"]["warning"] is None


def test_a_warning_reveals_no_variable(service: RawCaller) -> None:
    """Given a variable that is set and not allowed, then the warning is that of an unset one."""
    caller = service.sign_up()
    names = ("PATH", "NOT_THERE", "TOOLKIT_API_KEY")
    warnings = [connect(caller, name)["warning"] for name in names]
    assert warnings[0] == warnings[1] == warnings[2]


def test_does_not_wait_for_a_silent_vendor(settings: Settings) -> None:
    """Given a vendor that does not answer, then the connection is created with a warning."""
    with open_door(settings.model_copy(update={"connection_test_s": 0.01})) as door:
        door.faults.add(Fault("openai", delay_ms=600_000, times=None))
        connection = connect(door.sign_up(), "OPENAI_API_KEY")
    assert connection["warning"]["code"] == "PROVIDER_TIMEOUT"


def test_the_client_shows_the_warning(bare: Client) -> None:
    """Given a key that its vendor refuses, then the handle shows the warning."""
    connection = bare.connections.create("openai", "environment", "MINIMAX_API_KEY")
    assert connection.warning
    assert "warning: PROVIDER_AUTH_FAILED" in repr(connection)
    assert bare.connections.create("openai", "environment", "OPENAI_API_KEY").warning is None


@pytest.mark.parametrize("variable", ["MINIMAX_API_KEY", "NOT_THERE"])
def test_a_broken_connection_does_not_hide_an_older_one(bare: Client, variable: str) -> None:
    """Given a good connection, a newer broken one and another vendor, then the good one serves."""
    good = bare.connections.create("openai", "environment", "OPENAI_API_KEY").id
    bare.connections.create("anthropic", "environment", "ANTHROPIC_API_KEY")
    broken = bare.connections.create("openai", "environment", variable).id
    choices: list[dict[str, Any]] = [{}, {"optimize_for": "cost"}, {"provider": "openai"}]
    for options in choices:
        run = bare.runs.create("llm.generate", LINE, **options).wait(progress=False)
        assert run.provider != "openai" or run.record.connection_id == good
        candidates = bare.route("llm.generate", LINE, **options).candidates
        order = [c.connection_id for c in candidates if c.provider == "openai" and c.allowed]
        assert set(order) == {good, broken}
        assert order.index(good) < order.index(broken)
        assert run.record.routing is not None
        assert {good, broken} <= {c.connection_id for c in run.record.routing.candidates}


@pytest.mark.embedded
def test_tests_a_connection_on_request(client: Client) -> None:
    """Given a valid, a refused and an unset key, then the test of the connection states which."""
    for connection in client.connections.list():
        test = connection.test()
        if connection.record.provider == "aws":  # because it has no free request
            assert (test.record.resolved, test.record.accepted) == (True, None)
            continue
        assert (test.ok, test.record.provider) == (True, connection.record.provider)
        assert test.record.took_ms is not None
    refused = client.connections.create("minimax", "environment", "OPENAI_API_KEY")
    test = client.connections.test(refused.id)
    assert (test.ok, test.record.resolved, test.record.accepted) == (False, True, False)
    assert "sandbox-openai" not in repr(test)
    unset = client.connections.create("minimax", "environment", "NO_SUCH_KEY")
    test = client.connections.test(unset.id)
    assert (test.record.resolved, test.record.accepted) == (False, None)
    assert test.record.error.code == "SECRET_UNRESOLVED"
    assert unset.trust().record.overbilled == []


@pytest.mark.embedded
def test_discovers_variables_that_are_set(bare: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a conventional variable that is set, then it is listed, and can be connected."""
    monkeypatch.setenv("OPENAI_API_KEY", "not-looked-at")
    frame = bare.connections.discover().to_frame().set_index("provider")
    assert frame.loc["openai", "set"]
    assert not frame.loc["minimax", "set"]
    assert not frame["connected"].any()
    bare.connections.connect("openai")
    frame = bare.connections.discover().to_frame().set_index("provider")
    assert list(frame.index[frame["connected"]]) == ["openai"]
    assert "not-looked-at" not in frame.to_string()
    with pytest.raises(RequestError, match="Connect one of openai"):
        bare.connections.connect("google", "nobody")
    assert len(bare.connections.list()) == 1  # all of them, or none
    monkeypatch.setenv("GEMINI_API_KEY", "not-looked-at")
    assert [record.provider for record in bare.connections.connect("all")] == ["google"]
    assert len(bare.connections.connect("all")) == 0
