"""The plugin that prepares a Dask worker before its first notebook of a batch."""

import threading

from distributed import Worker, WorkerPlugin

from toolkit.batch.kernel.sources import prepare_python
from toolkit.batch.remote.source_keeper import get_source_keeper


class RowPreloadPlugin(WorkerPlugin):
    """A Dask plugin that prepares kernels and imports papermill while the engine is opened.

    A worker that joins later does so when it joins. At the end of the batch its kernels are ended.

    Args:
        preload: imports of its kernels; None if the kernels are of another language.
    """

    idempotent = True

    def __init__(self, batch_id: str, preload: tuple[str, ...] | None, *, fork: bool) -> None:
        self.name = f"toolkit-rows-{batch_id}"
        self._batch_id = batch_id
        self._preload = preload
        self._fork = fork

    def setup(self, worker: Worker) -> None:  # noqa: ARG002 - Dask names it
        """Prepare kernels in a thread, so that the worker answers its scheduler meanwhile."""
        threading.Thread(target=self._prepare, name="toolkit-preload", daemon=True).start()

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002 - Dask names it
        """End the batch's kernels on this worker, in a thread of its own."""
        close = get_source_keeper().close
        threading.Thread(target=close, args=(self._batch_id,), daemon=True).start()

    def _prepare(self) -> None:
        if self._preload is not None:
            keeper = get_source_keeper()
            with keeper.use(self._batch_id, fork=self._fork) as source:
                prepare_python(source, self._preload)
        import toolkit.batch.remote.row  # noqa: F401 - papermill, while kernels are prepared
