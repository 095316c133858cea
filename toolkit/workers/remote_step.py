"""CPU steps on a machine of a cluster: each in a worker process of its own, which can be killed.

A step arrives and leaves as a message of plain values, so that no object or secret of an engine is
pickled on the way.
"""

import atexit
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from typing import Any

from toolkit.contract.version import read_installed_version
from toolkit.workers.process import WorkerEndedError, WorkerProcess
from toolkit.workers.serialization import encode_message, read_message

MAX_REMEMBERED_CANCELS = 1_000


class StepRunner:
    """Runs steps in worker processes that it keeps for more steps, and kills cancelled steps.

    A cancel may come before the thread of its step has begun: it is remembered until then.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[WorkerProcess] = []
        self._busy: dict[str, Callable[[], None]] = {}  # kills the work of a task, by its id
        self._cancelled: dict[str, None] = {}

    def run(self, call: Mapping[str, Any]) -> dict[str, object]:
        """Run a step and return its answer; blocks, so it belongs in a thread.

        Args:
            call: `step`, its id; `module`, `name` and `args` of the function; `timeout_s`, and
                `memory_bytes` (0 for no limit).
        """
        step_id, timeout_s = str(call["step"]), float(call["timeout_s"])
        process = self._take_process(int(call["memory_bytes"]))
        expired = threading.Event()

        def expire() -> None:
            with self._lock:
                if step_id in self._busy:  # else the process may have another step by now
                    expired.set()
                    process.kill()

        timer = threading.Timer(timeout_s, expire)
        timer.daemon = True
        with self.hold(step_id, process.kill) as is_wanted:
            timer.start()
            try:
                answer = _make_error("ended", "it was cancelled")
                if is_wanted:
                    answer = process.call_function(
                        call["module"], call["name"], call["args"], timeout_s
                    )
            except WorkerEndedError as error:
                answer = _make_error("timeout" if expired.is_set() else "ended", str(error))
            finally:
                timer.cancel()
        with self._lock:
            if process.is_alive:
                self._idle.append(process)
        return answer

    @contextmanager
    def hold(self, task_id: str, kill: Callable[[], None]) -> Iterator[bool]:
        """Register for a block how to kill a task's work; yield False if the task was cancelled."""
        with self._lock:
            is_wanted = task_id not in self._cancelled
            self._cancelled.pop(task_id, None)
            if is_wanted:
                self._busy[task_id] = kill
        try:
            yield is_wanted
        finally:
            with self._lock:
                self._busy.pop(task_id, None)

    def cancel(self, task_id: str) -> None:
        """Kill the work of a task; a task that has not begun will not begin."""
        with self._lock:
            kill = self._busy.get(task_id)
            if kill is not None:
                kill()
                return
            self._cancelled[task_id] = None
            while len(self._cancelled) > MAX_REMEMBERED_CANCELS:
                del self._cancelled[next(iter(self._cancelled))]

    def close(self) -> None:
        """Kill all processes, busy or not."""
        with self._lock:
            kills = [*(process.kill for process in self._idle), *self._busy.values()]
            self._idle = []
        for kill in kills:
            kill()

    def _take_process(self, memory_bytes: int) -> WorkerProcess:
        """Take the most recently used idle process with this limit, or start a new process."""
        with self._lock:
            self._idle = [process for process in self._idle if process.is_alive]
            for process in reversed(self._idle):
                if process.memory_bytes == memory_bytes:
                    self._idle.remove(process)
                    return process
        return WorkerProcess(memory_bytes)


@cache
def get_step_runner() -> StepRunner:
    """Return the only runner of this process."""
    runner = StepRunner()
    atexit.register(runner.close)
    return runner


def run_step(message: bytes) -> bytes:
    """Run the step in a message, and return its answer as a message.

    An engine of another version is refused, because functions of the same name may differ.
    """
    call: Any = read_message(BytesIO(message))
    refusal = explain_other_version(call["version"])
    answer = get_step_runner().run(call) if refusal is None else _make_error("version", refusal)
    return b"".join(encode_message(answer, "result"))


def explain_other_version(version: str) -> str | None:
    """Explain in a line that the caller's version differs from this version, or return None."""
    own_version = read_installed_version()
    if version == own_version:
        return None
    return (
        f"A worker of the cluster has version {own_version} of the toolkit, but its caller has"
        f" {version}: install the same version on both."
    )


def _make_error(kind: str, message: str) -> dict[str, object]:
    return {"error": {"kind": kind, "message": message}}
