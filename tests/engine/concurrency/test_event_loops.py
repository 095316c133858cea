"""The event loop of an engine: uvloop if it is installed, otherwise asyncio's own."""

import asyncio
import importlib.util
import sys

import pytest

from toolkit.engine.concurrency.event_loops import create_event_loop


@pytest.mark.skipif(importlib.util.find_spec("uvloop") is None, reason="uvloop is not installed")
def test_uses_uvloop_if_installed() -> None:
    """Given uvloop, then the engine's loop is a loop of uvloop."""
    loop = create_event_loop()
    loop.close()
    assert type(loop).__module__.startswith("uvloop")


def test_uses_asyncio_without_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a system without uvloop, then the engine's loop is asyncio's, and it runs work."""
    monkeypatch.setitem(sys.modules, "uvloop", None)
    with asyncio.Runner(loop_factory=create_event_loop) as runner:
        assert isinstance(runner.get_loop(), asyncio.BaseEventLoop)
        assert runner.run(asyncio.to_thread(lambda: "served")) == "served"
