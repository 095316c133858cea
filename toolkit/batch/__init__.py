"""Many notebooks, fast: a grid of parameters in, executed notebooks and one table out.

>>> from toolkit import batch
>>> batch.run("notebook.ipynb", {"alpha": [0.1, 0.2]}, out="out")  # doctest: +SKIP

In the notebook:

>>> batch.record("score", 0.93)
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.batch.records import record
    from toolkit.batch.runner import run

# A notebook that calls `record` imports neither papermill nor pandas.
_EXPORTS = {"record": "toolkit.batch.records", "run": "toolkit.batch.runner"}

__all__ = ["record", "run"]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)
