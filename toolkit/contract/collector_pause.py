"""A pause of the garbage collector, for work that makes many objects and drops few."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_collector(*, objects_stay: bool = False) -> Iterator[None]:
    """Pause the garbage collector, because it would visit all new objects again and again.

    Args:
        objects_stay: move the objects to the oldest generation, because they will stay, as those
            of imports do. A full collection visits them; younger generations never do.
    """
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if objects_stay and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        if is_enabled:
            gc.enable()
