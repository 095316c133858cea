"""Sign-up: closed, limited by address, and by whose word the address goes."""

import httpx

from tests.server.conftest import Wire, serve_engine, serve_wire
from toolkit.local import open_engine
from toolkit.settings import Settings


async def post_sign_up(http: httpx.AsyncClient, name: str, **headers: str) -> httpx.Response:
    """The answer to a sign-up."""
    return await http.post(
        "/v1/account", json={"email": f"{name}@example.org"}, headers=headers or None
    )


async def test_closed_sign_up_is_refused(settings: Settings) -> None:
    """Given closed sign-up, then it is 403 with what to do, and no account is made."""
    engine = await open_engine(settings.model_copy(update={"closed_signup": True}))
    async with serve_wire(engine) as wire:
        answer = await post_sign_up(wire.http, "ada")
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "FORBIDDEN")
        assert "operator" in answer.json()["error"]["message"]
        assert (await wire.rows())["accounts"] == 0
    await engine.close(0)


async def test_an_address_opens_so_many_accounts(settings: Settings) -> None:
    """Given two an hour, then the third is 429, whatever proxy it says it comes through."""
    async with serve_engine(settings.model_copy(update={"signups_per_hour": 2})) as http:
        answers = [
            await post_sign_up(http, name, **{"X-Forwarded-For": f"203.0.113.{i}"})
            for i, name in enumerate(("ada", "bob", "cyd"))
        ]
    assert [answer.status_code for answer in answers] == [201, 201, 429]
    assert answers[2].json()["error"]["code"] == "RATE_LIMITED"
    assert 1700 < int(answers[2].headers["retry-after"]) <= 1800


async def test_a_trusted_proxy_tells_the_address(settings: Settings) -> None:
    """Given a proxy that is trusted, then each caller behind it has their own count."""
    update = {"signups_per_hour": 1, "trust_proxy": frozenset({"127.0.0.1"})}
    async with serve_engine(settings.model_copy(update=update)) as http:
        answers = [
            await post_sign_up(http, f"n{i}", **{"X-Forwarded-For": address})
            for i, address in enumerate(
                ("203.0.113.1", "203.0.113.2", "203.0.113.2", "2001:db8::1", "2001:db8::2")
            )
        ]
    assert [answer.status_code for answer in answers] == [201, 201, 429, 201, 429]


async def test_nobody_signs_up_as_the_notebook(wire: Wire) -> None:
    """Given the address of a notebook's own account, then it is as if it were taken."""
    answer = await wire.http.post("/v1/account", json={"email": "Notebook@localhost.localdomain"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "CONFLICT")
    _, key = await wire.engine.accounts.open_local_account()
    assert key
