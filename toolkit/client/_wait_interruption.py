"""One-line messages for interrupts of a wait."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial


@contextmanager
def explain_interrupts(resource: str, id: str) -> Iterator[None]:
    """Make an interrupt of a wait say that the work goes on, and how to wait again.

    Args:
        resource: name of the work's resource on the client, such as `runs`.

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
    """Make IPython, and a program at its end, show an interrupt as one line.

    The error keeps its class, by which asyncio and the interpreter recognize an interrupt.
    """
    if isinstance(error, KeyboardInterrupt):
        error.args = (line,)
    vars(error)["_render_traceback_"] = partial(list, (line,))  # pickle takes no lambda
