"""Helpers of the tests of cassettes: the file, its exchanges, and a machine without a network."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """The path of a cassette."""
    return tmp_path / "run.yaml"


@contextmanager
def cut_off() -> Iterator[None]:
    """Fail on each attempt to use the network or the sandbox."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a replay reached out")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolkit.engine.transport.checking_transport.CheckingTransport", refuse)
        patch.setattr("toolkit.sandbox.create_app", refuse)
        patch.setattr("socket.socket.connect", refuse)
        patch.setattr("socket.getaddrinfo", refuse)
        yield


def read_exchanges(tape: Path) -> list[Any]:
    """Read the exchanges of a cassette."""
    cassette = yaml.safe_load(tape.read_text(encoding="utf-8"))
    assert cassette["version"] == 1
    return list(cassette["exchanges"])
