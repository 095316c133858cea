"""Interrupts of a wait, told in one line."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class WaitInterruptedError(KeyboardInterrupt):
    """An interrupt of a wait: what was waited for goes on."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows instead of a traceback."""
        return [str(self)]


@contextmanager
def explain_interrupts(resource: str, id: str) -> Iterator[None]:
    """Have an interrupt of a wait say that the work goes on, and how to wait again.

    A cell that awaits is cancelled instead, by an error that asyncio has to get as it is: only
    what IPython shows of that is another.

    Args:
        resource: the name of what is waited for on the client, such as `runs`.
        id: of that.

    Raises:
        WaitInterruptedError: in place of an interrupt.
    """
    line = f'Interrupted; the work goes on. To wait again: client.{resource}.get("{id}").wait()'
    try:
        yield
    except KeyboardInterrupt:
        raise WaitInterruptedError(line) from None
    except asyncio.CancelledError as error:
        vars(error)["_render_traceback_"] = lambda: [line]
        raise
