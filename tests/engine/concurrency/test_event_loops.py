"""The event loop that an engine lives on."""

import asyncio
import importlib.util
import sys

import pytest

from toolkit.engine.concurrency.event_loops import create_event_loop


@pytest.mark.skipif(importlib.util.find_spec("uvloop") is None, reason="there is none here")
def test_it_is_the_fast_one() -> None:
    """Given uvloop, then the loop is one of its."""
    loop = create_event_loop()
    loop.close()
    assert type(loop).__module__.startswith("uvloop")


def test_without_it_asyncios_own_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a system that uvloop is not made for, then the loop is asyncio's."""
    monkeypatch.setitem(sys.modules, "uvloop", None)
    loop = create_event_loop()
    try:
        assert isinstance(loop, asyncio.BaseEventLoop)
        assert loop.run_until_complete(asyncio.to_thread(lambda: "served")) == "served"
    finally:
        loop.close()
