"""The entry point by which papermill finds the engine `toolkit-warm`.

papermill loads its entry points while it is imported itself, which may be in the middle of the
import of the engine's own module. So that module is imported only on use.
"""

from typing import Any


class _LazyEngine:
    def __getattr__(self, name: str) -> Any:
        from toolkit.batch.papermill_engine import WarmEngine

        return getattr(WarmEngine, name)


warm = _LazyEngine()
