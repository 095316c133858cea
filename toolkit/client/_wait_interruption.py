"""Interrupts of a wait, told in one line."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial


@contextmanager
def explain_interrupts(resource: str, id: str) -> Iterator[None]:
    """Have an interrupt of a wait say that the work goes on, and how to wait again.

    Args:
        resource: the name of what is waited for on the client, such as `runs`.
        id: of that.

    Raises:
        KeyboardInterrupt: the interrupt, or `asyncio.CancelledError` in a cell that awaits.
    """
    try:
        yield
    except (KeyboardInterrupt, asyncio.CancelledError) as error:
        again = f'client.{resource}.get("{id}").wait()'
        explain_interrupt(error, f"Interrupted; the work goes on. To wait again: {again}")
        raise


def explain_interrupt(error: BaseException, line: str) -> None:
    """Have an interrupt be shown as one line, by IPython and at the end of a program.

    It stays the error that it is: asyncio and the interpreter, which ends by the signal then, tell
    it by its class.
    """
    if isinstance(error, KeyboardInterrupt):
        error.args = (line,)
    vars(error)["_render_traceback_"] = partial(list, (line,))  # pickle takes no lambda
