"""Calls of single capabilities: signatures of their own, and what they send."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from scripts import capability_calls
from tests.support.worker_capability import load_work_registry
from toolkit import AsyncClient, Client


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A sandbox with one capability more."""
    folder = tmp_path_factory.mktemp("calls")
    with Client.local(folder, sandbox=True, registry=load_work_registry()) as opened:
        yield opened


def test_the_calls_are_current() -> None:
    """Given the capabilities' schemas, then the module is what the script writes."""
    assert capability_calls.TARGET.read_text(encoding="utf-8") == capability_calls.write_module()


def test_a_call_is_a_run(client: Client) -> None:
    """Given fields, options and a version, then each goes where it belongs."""
    run = client.capabilities.llm_generate(
        objective="A line on tides",
        max_tokens=60,
        system="",
        version="1",
        options={"provider": "openai"},
    ).wait(progress=False)
    assert run.input == {"objective": "A line on tides", "max_tokens": 60}
    assert (run.capability, run.provider) == ("llm.generate@1", "openai")


def test_a_call_has_a_signature(client: Client) -> None:
    """Given a call, then its signature has types and defaults, and its help says what they are."""
    call = client.capabilities.composition_layout
    parameters = inspect.signature(call).parameters
    assert parameters["title"].default is inspect.Parameter.empty
    assert parameters["width"].default == 1200
    assert get_args(parameters["format"].annotation) == ("png", "svg")
    assert "the headline" in str(inspect.getdoc(call))
    assert list(parameters)[-2:] == ["version", "options"]


def test_a_capability_of_somebody_else_has_its_call(client: Client) -> None:
    """Given a capability that is not built in, then it is called by its name, too."""
    assert "test_work" in dir(client.capabilities)
    made = getattr(client.capabilities, "test_work")(task="double", args=[21])  # noqa: B009
    assert made.wait(progress=False).output == {"result": 42}


async def test_the_async_client_has_the_same_calls(tmp_path: Path) -> None:
    """Given the async client, then its calls are awaited."""
    client = AsyncClient.local(tmp_path, sandbox=True)
    try:
        run = await client.capabilities.llm_generate(objective="Tides")
        assert (await run.wait(progress=False)).status == "completed"
    finally:
        await client.aclose()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"objectiv": "x"}, "did you mean `objective`"),
        ({}, "give `objective`"),
        ({"objective": "x", "options": {"providr": "openai"}}, "did you mean `provider`"),
    ],
)
def test_a_wrong_argument_is_a_type_error(
    client: Client, fields: dict[str, object], told: str
) -> None:
    """Given a field or an option that there is not, then it is a TypeError before any request."""
    with pytest.raises(TypeError, match=told):
        getattr(client.capabilities, "llm_generate")(**fields)  # noqa: B009
