"""The plugin by which a Dask worker kills the process of a step that was cancelled."""

from distributed import Worker, WorkerPlugin

from toolkit.workers.remote_step import get_step_runner

_RUNNING_STATES = ("executing", "long-running")
_ENDED_STATES = ("memory", "error", "rescheduled")


class StepCancelPlugin(WorkerPlugin):
    """Passes the cancels of tasks on to the processes that run their steps.

    Dask itself only forgets a running task, because it cannot end a thread.
    """

    name = "toolkit-steps"
    idempotent = True

    def transition(self, key: object, start: str, finish: str, **_: object) -> None:
        """Kill the process of a running task that is no longer wanted."""
        if start in _RUNNING_STATES and finish not in _ENDED_STATES:
            get_step_runner().cancel(str(key))

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002 - Dask names it
        """Kill all processes of the worker's steps."""
        get_step_runner().close()
