"""Fixtures of the sandbox's tests: an app, and clients that call it in this process."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from toolkit.sandbox import SANDBOX_KEYS, create_app
from toolkit.sandbox.state import SandboxState

AGENT = "toolkit-tests/1.0 (tests@example.org)"


def client_for(app: Starlette, key: str | None = None) -> httpx.AsyncClient:
    """Return a client of the app, with the vendor's key if it is named."""
    headers = {"User-Agent": AGENT}
    if key:
        headers["Authorization"] = f"Bearer {SANDBOX_KEYS[key]}"
    transport = httpx.ASGITransport(app=app)
    return httpx.AsyncClient(transport=transport, base_url="http://sandbox", headers=headers)


@pytest.fixture
def app() -> Starlette:
    """A fresh vendor cloud."""
    return create_app(seed=7)


@pytest.fixture
def state(app: Starlette) -> SandboxState:
    """The state of the cloud."""
    state = app.state.sandbox
    assert isinstance(state, SandboxState)
    return state


def make_client_fixture(key: str | None = None) -> Any:
    """Make a fixture of a client, with the vendor's key if it is named."""

    @pytest.fixture
    async def client(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
        async with client_for(app, key) as client:
            yield client

    return client


anonymous = make_client_fixture()
openai = make_client_fixture("OPENAI_API_KEY")
minimax = make_client_fixture("MINIMAX_API_KEY")
runpod = make_client_fixture("RUNPOD_API_KEY")
