"""The event loops that engines run on: uvloop's if it is installed, otherwise asyncio's."""

import asyncio


def create_event_loop() -> asyncio.AbstractEventLoop:
    """Create an event loop for an engine: uvloop's if it is installed, otherwise asyncio's.

    With uvloop, a request through a bare proxy takes a quarter less CPU. It exists neither for
    Windows nor for interpreters other than CPython.
    """
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
