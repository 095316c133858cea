"""Fixtures of the tests of widgets: one sandbox engine, and what a notebook would save of them."""

import json
from collections.abc import Callable, Iterator

import ipywidgets
import pytest

from toolkit import Client
from toolkit.sandbox import Faults


@pytest.fixture(scope="module")
def faults() -> Faults:
    """The faults of the sandbox."""
    return Faults()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, faults: Faults) -> Iterator[Client]:
    """A sandbox with every vendor connected."""
    with Client.local(tmp_path_factory.mktemp("data"), faults=faults) as client:
        yield client


@pytest.fixture
def saved() -> Callable[[], str]:
    """The state of every widget there is, as a saved notebook has it."""
    return lambda: json.dumps(ipywidgets.Widget.get_manager_state(), default=str)
