"""Fixtures of the tests of widgets: one sandbox engine, and its faults."""

from collections.abc import Iterator

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
