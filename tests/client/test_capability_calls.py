"""Methods for single capabilities: their signatures and requests."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from tests.support.worker_capability import load_work_registry
from toolkit import AsyncClient, Client


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A sandbox with an additional capability."""
    folder = tmp_path_factory.mktemp("calls")
    with Client.local(folder, sandbox=True, registry=load_work_registry()) as opened:
        yield opened


def test_call_creates_a_run(client: Client) -> None:
    """Given fields, options and a version, then the run has each of them."""
    run = client.capabilities.llm_generate(
        objective="A line on tides",
        max_tokens=60,
        system="",
        version="1",
        options={"provider": "openai"},
    ).wait(progress=False)
    assert run.input == {"objective": "A line on tides", "max_tokens": 60}
    assert (run.capability, run.provider) == ("llm.generate@1", "openai")


def test_call_has_a_typed_signature(client: Client) -> None:
    """Given a call, then its signature has types and defaults, and its help describes them."""
    call = client.capabilities.composition_layout
    parameters = inspect.signature(call).parameters
    assert parameters["title"].default is inspect.Parameter.empty
    assert parameters["width"].default == 1200
    assert get_args(parameters["format"].annotation) == ("png", "svg")
    assert "the headline" in str(inspect.getdoc(call))
    assert list(parameters)[-2:] == ["version", "options"]


def test_plugin_capability_has_a_call(client: Client) -> None:
    """Given a capability that is not built in, then the client has a method of its name."""
    assert "test_work" in dir(client.capabilities)
    run = getattr(client.capabilities, "test_work")(task="double", args=[21])  # noqa: B009
    assert run.wait(progress=False).output == {"result": 42}


async def test_async_client_has_calls(tmp_path: Path) -> None:
    """Given the async client, then its calls are awaited."""
    async with AsyncClient.local(tmp_path, sandbox=True) as client:
        run = await client.capabilities.llm_generate(objective="Tides")
        assert (await run.wait(progress=False)).status == "completed"


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ({"objectiv": "x"}, "did you mean `objective`"),
        ({}, "give `objective`"),
        ({"objective": "x", "options": {"providr": "openai"}}, "did you mean `provider`"),
    ],
)
def test_rejects_wrong_arguments(client: Client, fields: dict[str, object], hint: str) -> None:
    """Given an unknown or missing field or option, then the call raises a TypeError."""
    with pytest.raises(TypeError, match=hint):
        getattr(client.capabilities, "llm_generate")(**fields)  # noqa: B009
