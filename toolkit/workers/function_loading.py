"""The loading of functions ahead of need; for a worker process that will soon be asked for them."""

import sys
from collections.abc import Sequence

from toolkit.workers.serialization import find_function


def load_functions(names: Sequence[Sequence[str]]) -> None:
    """Import the modules of functions, so that the first call need not.

    A module may define `prepare_worker()`, which loads the requirements of its functions.

    Args:
        names: the module of each, and its name there.
    """
    for module, name in names:
        find_function(module, name)
    for module in dict.fromkeys(module for module, _ in names):
        prepare = getattr(sys.modules[module], "prepare_worker", None)
        if callable(prepare):
            prepare()
