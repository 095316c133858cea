"""Requests for warm kernels, and the common interface of kernels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

LAUNCHER = "ipykernel_launcher"
ConnectionInfo = dict[str, Any]


class NotWarmError(Exception):
    """No warm kernel is available for this request; start one as usual."""


class SourceClosedError(Exception):
    """The source was closed: callers that wait for a kernel must give up."""


class Kernel(Protocol):
    """The process of a kernel: a `subprocess.Popen`, or a process that a zygote forked."""

    pid: int

    def poll(self) -> int | None:
        """Return its exit code, or None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its exit code."""

    def kill(self) -> None:
        """End it."""


@dataclass(frozen=True, slots=True)
class KernelRequest:
    """A request for a kernel.

    Attributes:
        command: command that would start the kernel cold.
        cwd: working folder of the kernel.
        env: whole environment of the kernel.
        preload: imports that it may have done already, as `module` or `module:name`.
    """

    command: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    preload: tuple[str, ...] = ()

    def split_command(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Split the command into the interpreter with its options and the kernel's own options.

        Raises:
            NotWarmError: if the command does not start an IPython kernel.
        """
        if LAUNCHER not in self.command:
            raise NotWarmError
        at = self.command.index(LAUNCHER)
        options = tuple(word for word in self.command[at + 1 :] if word.startswith("--"))
        return self.command[: at - 1], options
