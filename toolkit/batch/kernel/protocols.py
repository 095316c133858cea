"""The interface of warm kernels and their sources."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any, Protocol

LAUNCHER = "ipykernel_launcher"
ConnectionInfo = dict[str, Any]


class NotWarmError(Exception):
    """No warm kernel is available for this request; start one as usual."""


class SourceClosedError(Exception):
    """The source was closed: callers that wait for a kernel have to give up."""


class Kernel(Protocol):
    """The process of a kernel, with as much of `Popen` as a provisioner needs."""

    pid: int
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    def poll(self) -> int | None:
        """Return its exit code, once it has one."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its exit code."""

    def send_signal(self, sig: int, /) -> None:
        """Signal it."""

    def terminate(self) -> None:
        """Ask it to end."""

    def kill(self) -> None:
        """End it."""


@dataclass(frozen=True, slots=True)
class KernelRequest:
    """A request for a kernel.

    Attributes:
        command: what would start it cold.
        cwd: the folder it works in.
        env: its whole environment.
        preload: what it may have imported already: `module` or `module:name`.
    """

    command: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    preload: tuple[str, ...] = ()

    def split_command(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Split the command into the interpreter with its options and the kernel's own arguments.

        Raises:
            NotWarmError: if it is no kernel of IPython.
        """
        if LAUNCHER not in self.command:
            raise NotWarmError
        at = self.command.index(LAUNCHER)
        return self.command[: at - 1], self.command[at + 1 :]


class KernelSource(Protocol):
    """Gives kernels that are already prepared; safe to ask from many threads.

    Attributes:
        folder: for connection files.
    """

    folder: str

    def prepare(self, wanted: KernelRequest) -> None:
        """Begin with what a kernel of this kind needs, if it can be done before one is wanted."""

    def start(self, wanted: KernelRequest) -> tuple[Kernel, ConnectionInfo]:
        """Return a kernel that was never used, and where it listens.

        Raises:
            NotWarmError: if it can only be had cold.
            SourceClosedError: if this was closed.
        """

    def close(self) -> None:
        """Kill what is left, running kernels too."""
