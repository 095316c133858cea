"""What the tests of widgets share: one sandbox engine, and a look at what a notebook would save."""

import json
from collections.abc import Callable, Iterator

import ipywidgets
import pytest

from toolkit import Client
from toolkit.sandbox import Faults


@pytest.fixture(scope="module")
def faults() -> Faults:
    """What goes wrong in the sandbox."""
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
