"""The program of a worker process: reads a call, runs it, writes the answer, and repeats.

It is started by its path, so nothing of the toolkit is imported before the first call has said
where modules are found. It ends when its parent closes the pipe or dies: at once, even in the
middle of work that never returns to Python.
"""

import contextlib
import os
import signal
import sys
from io import FileIO
from types import FrameType
from typing import Any

try:
    import fcntl
    import resource
    import select
except ImportError:  # pragma: no cover - Windows: a worker ends with its parent when it is idle
    fcntl = resource = select = None  # type: ignore[assignment]

GRACE_S = 5.0  # seconds after the deadline (when its parent kills it) at which it ends itself
TRACEBACK_CHARACTERS, MESSAGE_CHARACTERS = 4_000, 1_000
NICENESS = 10  # processes that answer requests go first if there are too few cores
OOM_SCORE_ADJUSTMENT = (
    "500"  # rather than a server, the kernel ends a worker that uses up the memory
)


def main() -> None:
    """Serve calls until the parent has ended."""
    source, sink = FileIO(os.dup(0)), FileIO(os.dup(1), "w")
    # Output of the work must not mix with the answers.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # An operator who stops a service may signal all its processes: the parent says when a step
    # ends. The signal is handled, not ignored, so that a step's children do not ignore it.
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    if hasattr(signal, "SIGUSR1"):  # pragma: no branch - Windows has none
        signal.signal(signal.SIGUSR1, _interrupt_step)
    _limit_resources(int(sys.argv[1]))
    die_with_parent(int(sys.argv[2]))
    sys.path[:] = sys.argv[3:]
    # httpx's own command line would take as long to import as the rest of it, and is not used here.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    while _serve_call(source, sink):
        pass


class StepInterrupted(BaseException):
    """Raised within a function that the parent process interrupts."""


class _State:
    """Flags that signal handlers and functions of this worker process share.

    Attributes:
        is_in_step: True while a function runs; a signal handler reads it.
        is_lowered: True once the priority is lower than the parent's.
    """

    is_in_step = False
    is_lowered = False


def _interrupt_step(_number: int, frame: FrameType | None) -> None:
    """End the step under way, if any, by an exception; the process goes on.

    An import is not interrupted, because half a module would stay: the step ends after it, or the
    parent ends the process.
    """
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return
        frame = frame.f_back
    if _State.is_in_step:
        raise StepInterrupted


def _serve_call(source: FileIO, sink: FileIO) -> bool:
    """Serve one call; return False once the parent has ended."""
    from toolkit.workers.serialization import encode_message, read_message, write_message

    try:
        call: Any = read_message(source)
    except EOFError:
        return False
    if "path" in call:  # the path has changed since the last call
        sys.path[:] = call["path"]
    if not (_State.is_lowered or call["is_short"]):
        # Not before: a caller waits for imports and short steps. It cannot be raised again.
        _State.is_lowered = True
        _lower_priority()
    _end_after(call["timeout_s"] + GRACE_S)
    answer = _run_call(call)
    _end_after(0)
    try:
        pieces = encode_message(answer, "result")
    except TypeError as error:
        pieces = encode_message({"error": {"kind": "plain", "message": str(error)}})
    write_message(sink, pieces)
    return True


def _run_call(call: Any) -> dict[str, object]:
    from toolkit.workers.serialization import find_function

    try:
        function = find_function(call["module"], call["name"])
    except (ImportError, AttributeError) as error:
        return {"error": {"kind": "import", "message": str(error)[:MESSAGE_CHARACTERS]}}
    try:
        try:
            _State.is_in_step = True
            return {"value": function(*call["args"])}
        finally:
            _State.is_in_step = False
    except StepInterrupted:
        return {"error": {"kind": "interrupted"}}
    except (
        BaseException
    ) as error:  # any error of the work is its answer: only a signal ends a worker
        return {"error": _describe_error(error)}


def _describe_error(error: BaseException) -> dict[str, object]:
    """Return an error as plain values: a vendor's as it is, others as a built-in class."""
    vendor = sys.modules.get("toolkit.plugins.vendor")
    if vendor is not None and isinstance(error, vendor.ProviderError):
        return {
            "kind": "fault",
            "code": error.code.name,
            "message": error.message,
            "retryable": error.retryable,
            "retry_after": error.retry_after,
            "status": error.status,
            "vendor_request_id": error.vendor_request_id,
        }
    import traceback

    base = next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")
    return {
        "kind": "python",
        "base": base.__name__,
        "message": str(error)[:MESSAGE_CHARACTERS],
        "traceback": "".join(traceback.format_exception(error))[-TRACEBACK_CHARACTERS:],
    }


def _limit_resources(memory_bytes: int) -> None:
    if resource is None:  # pragma: no cover - Windows
        return
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_bytes:
        # Limits allocated memory, not mapped memory: a file of many gigabytes may be read.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(OOM_SCORE_ADJUSTMENT)


def _lower_priority() -> None:
    """Lower this process's priority, so that the parent and others go first."""
    if not hasattr(os, "nice"):  # pragma: no cover - Windows
        return
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    # Linux may share CPU time by session first, and this program has its own session.
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as file:
        file.write(str(NICENESS))


def die_with_parent(lifeline: int) -> None:
    """Have the kernel end this process when the parent's end of a pipe closes; not on Windows.

    Nothing is ever written to that pipe: the kernel would signal a write, too, and might do so
    only after the reader has read it. No handler is set, so that a step in C, which never returns
    to Python, is ended too.
    """
    if fcntl is None:  # pragma: no cover - Windows
        return
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    poll = select.poll()
    poll.register(lifeline, 0)  # it may have closed before the kernel was asked to watch
    if poll.poll(0):
        os._exit(0)


def _end_after(seconds: float) -> None:
    """End this process by a signal after the given seconds; 0 cancels that."""
    if hasattr(signal, "setitimer"):  # pragma: no branch - Windows has none
        signal.setitimer(signal.ITIMER_REAL, seconds)


if __name__ == "__main__":
    main()
