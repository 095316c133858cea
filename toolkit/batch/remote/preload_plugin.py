"""The plugin that prepares a Dask worker before its first notebook of a batch."""

import threading

from distributed import Worker, WorkerPlugin

from toolkit.batch.kernel.sources import prepare_python
from toolkit.batch.remote.source_keeper import get_source_keeper


class RowPreloadPlugin(WorkerPlugin):
    """A plugin that starts zygotes for kernels and imports papermill while the engine is opened.

    A worker that joins later does so when it joins. At the end of the batch its kernels are ended.

    Args:
        preload: imports of its kernels; None if the kernels are of another language.
        fork: whether kernels may be forked.
        renew_after: number of forks after which a zygote is replaced.
    """

    idempotent = True

    def __init__(
        self, batch_id: str, preload: tuple[str, ...] | None, *, fork: bool, renew_after: int
    ) -> None:
        self.name = f"toolkit-rows-{batch_id}"
        self._batch_id = batch_id
        self._preload = preload
        self._fork = fork
        self._renew_after = renew_after

    def setup(self, worker: Worker) -> None:  # noqa: ARG002 - Dask names it
        """Begin, in a thread: the worker answers its scheduler meanwhile."""
        threading.Thread(target=self._prepare, name="toolkit-preload", daemon=True).start()

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002 - Dask names it
        """End the batch's kernels."""
        close = get_source_keeper().close
        threading.Thread(target=close, args=(self._batch_id,), daemon=True).start()

    def _prepare(self) -> None:
        if self._preload is not None:
            keeper = get_source_keeper()
            with keeper.use(
                self._batch_id, fork=self._fork, renew_after=self._renew_after
            ) as source:
                prepare_python(source, self._preload)
        import toolkit.batch.remote.row  # noqa: F401 - papermill, while kernels are prepared
