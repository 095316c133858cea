"""The options of a batch."""

import os
from dataclasses import dataclass
from pathlib import Path

from toolkit.batch import papermill_engine
from toolkit.batch.remote.executors import RemoteWorkers


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """The options of a batch; `run` documents them."""

    notebook: Path
    out: Path
    workers: int | None = None
    timeout: float | None = None
    resume: bool = True
    preload: tuple[str, ...] | None = None
    fork: bool = True
    renew_after: int = papermill_engine.RENEW_AFTER
    remote: RemoteWorkers | None = None

    @property
    def worker_count(self) -> int:
        """The number of notebooks that run at once."""
        return self.workers or os.cpu_count() or 1
