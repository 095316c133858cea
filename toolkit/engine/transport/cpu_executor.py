"""The interface of executors of CPU work, and the reader of a worker process's answers."""

import builtins
from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import Any, Protocol

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import ProviderError, RunInProcess
from toolkit.workers.serialization import NotSerializableError

NO_RESOURCES: Mapping[str, float] = {}
OnWait = Callable[[str | None], None]  # receives the reason why a step waits, then None
OnQueued = Callable[[float], None]  # receives the seconds for which a step waited to be started


def ignore(*_: object) -> None:
    """Ignore the arguments."""


class CpuExecutor(Protocol):
    """An executor of CPU work, which runs it in a process that can be killed."""

    def prepare(self, functions: Sequence[Callable[..., object]]) -> None:
        """Get ready to run functions that will soon be requested; does not wait."""
        ...

    async def dispatch(
        self,
        step: RunInProcess,
        account_id: str,
        resources: Mapping[str, float] = NO_RESOURCES,
        on_wait: OnWait = ignore,
        on_queued: OnQueued = ignore,
    ) -> object:
        """Run a step and return its result; cancelling this ends the step at once.

        Args:
            step: the function and its arguments.
            account_id: the account that takes turns with others.
            resources: resources that the machine must have free; only a cluster has others.
            on_wait: receives the reason why the step waits, apart from its turn.
            on_queued: the function that receives the seconds before the step was started.

        Raises:
            NotSerializableError: an argument or the result cannot travel.
            ProviderError: the step took too long, or the worker died.
            Exception: the function's own error, as the nearest built-in class.
        """
        ...

    async def aclose(self) -> None:
        """End all running steps, and the workers."""
        ...


def make_timeout(name: str, timeout_s: float) -> ProviderError:
    """Make the error of a step that was ended at its deadline."""
    return ProviderError(
        ErrorCode.PROVIDER_TIMEOUT,
        f"`{name}` was stopped, because it took longer than the {timeout_s:g} s of"
        " `cpu_timeout_s`: request less work.",
        retryable=False,
    )


def make_worker_loss(name: str, reason: str) -> ProviderError:
    """Make the error of a step whose worker process died under it."""
    return ProviderError(
        ErrorCode.INTERNAL,
        f"The worker process that ran `{name}` died: {reason}. Try again.",
        retryable=True,
    )


# Fields of each kind of error in an answer, and their types.
_ERROR_FIELDS: Mapping[str, Mapping[str, type | UnionType]] = {
    "fault": {
        "code": str, "message": str, "retryable": bool, "retry_after": int | float | None,
        "status": int | None, "vendor_request_id": str | None,
    },
    "python": {"base": str, "message": str, "traceback": str},
}  # fmt: skip
_MESSAGE_KINDS = frozenset({"plain", "import", "version", "timeout", "ended"})


def is_answer(value: object) -> bool:
    """Return True if a value has the form of a worker process's answer.

    >>> is_answer({"value": 1}), is_answer({"error": {"kind": "python"}})
    (True, False)
    """
    if not isinstance(value, dict):
        return False
    error = value.get("error")
    if error is None:
        return "value" in value
    if not isinstance(error, dict):
        return False
    if error.get("kind") in _MESSAGE_KINDS:
        return isinstance(error.get("message"), str)
    fields = _ERROR_FIELDS.get(str(error.get("kind")))
    if fields is None or any(not isinstance(error.get(name), fields[name]) for name in fields):
        return False
    return error["kind"] != "fault" or error["code"] in ErrorCode.__members__


def read_result(answer: Any, step: RunInProcess) -> object:
    """Return the value of a worker process's answer, or raise its error.

    Raises:
        NotSerializableError: the function was not found, or its result cannot travel.
        ProviderError: the function raised it, or memory ran out.
        Exception: any other error of the function, as the nearest built-in class.
    """
    error = answer.get("error")
    if error is None:
        value: object = answer["value"]
        return value
    module, name = step.name
    match error["kind"]:
        case "fault":
            raise ProviderError(
                ErrorCode[error["code"]],
                error["message"],
                retryable=error["retryable"],
                retry_after=error["retry_after"],
                status=error["status"],
                vendor_request_id=error["vendor_request_id"],
            )
        case "interrupted":
            raise make_worker_loss(name, "it was interrupted")
        case "plain":
            raise NotSerializableError(error["message"])
        case "import":
            raise NotSerializableError(
                f"A worker process cannot import `{module}.{name}`: {error['message']}."
            )
    error_class = getattr(builtins, error["base"], Exception)
    if error_class is MemoryError:
        raise ProviderError(
            ErrorCode.INTERNAL,
            f"`{name}` needs more memory than `cpu_memory_bytes` allows: request less work.",
            retryable=False,
        )
    # Not SystemExit, which must not end this process, nor a function, which must not be called.
    if not (isinstance(error_class, type) and issubclass(error_class, Exception)):
        error_class = RuntimeError
    try:
        exception = error_class(error["message"])
    except TypeError:  # it takes more than a text, as a UnicodeDecodeError does
        exception = RuntimeError(error["message"])
    exception.add_note(f"in a worker process:\n{error['traceback']}")
    raise exception
