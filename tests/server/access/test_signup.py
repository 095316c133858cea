"""Sign-up: closed, and limited by the address of the caller."""

import httpx

from tests.server.conftest import Wire, open_service, serve_engine
from toolkit.settings import Settings


async def post_sign_up(http: httpx.AsyncClient, name: str, **headers: str) -> httpx.Response:
    """Sign up, and return the answer."""
    body = {"email": f"{name}@example.org"}
    return await http.post("/v1/account", json=body, headers=headers or None)


async def test_rejects_a_closed_sign_up(settings: Settings) -> None:
    """Given closed sign-up, then 403 names the next step, and no account is created."""
    async with open_service(settings.model_copy(update={"closed_signup": True})) as wire:
        answer = await post_sign_up(wire.http, "ada")
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "FORBIDDEN")
        assert "operator" in answer.json()["error"]["message"]
        assert (await wire.rows())["accounts"] == 0


async def test_limits_sign_ups_by_address(settings: Settings) -> None:
    """Given two sign-ups an hour, then the third gets 429, with any X-Forwarded-For header."""
    async with serve_engine(settings.model_copy(update={"signups_per_hour": 2})) as http:
        answers = [
            await post_sign_up(http, name, **{"X-Forwarded-For": f"203.0.113.{i}"})
            for i, name in enumerate(("ada", "bob", "cyd"))
        ]
    assert [answer.status_code for answer in answers] == [201, 201, 429]
    assert answers[2].json()["error"]["code"] == "RATE_LIMITED"
    assert 1700 < int(answers[2].headers["retry-after"]) <= 1800


async def test_trusts_the_address_of_a_trusted_proxy(settings: Settings) -> None:
    """Given a trusted proxy, then each caller behind it has a limit of its own."""
    update = {"signups_per_hour": 1, "trust_proxy": frozenset({"127.0.0.1"})}
    async with serve_engine(settings.model_copy(update=update)) as http:
        answers = [
            await post_sign_up(http, f"n{i}", **{"X-Forwarded-For": address})
            for i, address in enumerate(
                ("203.0.113.1", "203.0.113.2", "203.0.113.2", "2001:db8::1", "2001:db8::2")
            )
        ]
    assert [answer.status_code for answer in answers] == [201, 201, 429, 201, 429]


async def test_rejects_a_sign_up_as_the_notebook(wire: Wire) -> None:
    """Given the address of a notebook's account, then the sign-up is a conflict."""
    answer = await wire.http.post("/v1/account", json={"email": "Notebook@localhost.localdomain"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "CONFLICT")
    _, key = await wire.engine.accounts.open_local_account()
    assert key
