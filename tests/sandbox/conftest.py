"""Fixtures of the sandbox's tests: one app per test, and clients that speak to it in-process."""

from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.applications import Starlette

from toolkit.sandbox import SANDBOX_KEYS, create_app
from toolkit.sandbox.state import SandboxState

AGENT = "toolkit-tests/1.0 (tests@example.org)"


def client_for(app: Starlette, key: str | None = None) -> httpx.AsyncClient:
    """A client on the app's loopback, with a key if one is named."""
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
    found = app.state.sandbox
    assert isinstance(found, SandboxState)
    return found


@pytest.fixture
async def anonymous(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    """A client without a key."""
    async with client_for(app) as client:
        yield client


@pytest.fixture
async def openai(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    """A client with the openai key."""
    async with client_for(app, "OPENAI_API_KEY") as client:
        yield client


@pytest.fixture
async def minimax(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    """A client with the minimax key."""
    async with client_for(app, "MINIMAX_API_KEY") as client:
        yield client


@pytest.fixture
async def runpod(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    """A client with the runpod key."""
    async with client_for(app, "RUNPOD_API_KEY") as client:
        yield client
