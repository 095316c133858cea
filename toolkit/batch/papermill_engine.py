"""The engine `toolkit-warm` of papermill: its notebooks run in kernels that are already prepared.

Papermill's own engine adds about a second to each notebook. Imports of the kernel take 0.7 s and
more of CPU, and the client waits for 0.2 s of silence after its start. Checks for its end are up
to 0.2 s apart, and each cell is saved twice.
"""

import asyncio
import atexit
import os
import signal
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from queue import Empty
from typing import Any, cast
from uuid import uuid4

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.manager import KernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from nbclient.util import ensure_async, run_sync
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import Engine, papermill_engines
from papermill.log import logger

from toolkit.batch.imports import find_preloads
from toolkit.batch.kernel.fork_server import LAUNCHER, KernelRequest, NotWarmError
from toolkit.batch.kernel.sources import KernelSource
from toolkit.batch.records import IN_BATCH_VARIABLE

ENGINE_NAME = "toolkit-warm"
GRACE_S = 2.0  # for the last actions of a notebook, such as its exit handlers
POLL_INTERVAL_S = 0.003
ANSWER_TIMEOUT_S = 0.2
NO_VARIABLES: Mapping[str, str] = {}
QUIET_FLAG = "--IPKernelApp.log_level=ERROR"


class WarmProvisioner(LocalProvisioner):
    """A provisioner that takes a prepared kernel instead of starting a new kernel."""

    source: KernelSource
    preload: tuple[str, ...] = ()

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Launch a kernel; use a prepared kernel if there is one of this kind."""
        kwargs["env"] = {**kwargs["env"], IN_BATCH_VARIABLE: "1"}
        cwd = str(kwargs.get("cwd") or os.getcwd())
        request = KernelRequest(tuple(cmd), cwd, kwargs["env"], self.preload)
        try:
            process, connection = self.source.start(request)
        except NotWarmError:
            return await super().launch_kernel(cmd, **kwargs)
        self.process = cast("Any", process)
        self.pid, self.cwd = process.pid, cast("Any", cwd)
        self.connection_info = cast("KernelConnectionInfo", connection)
        return self.connection_info

    async def send_signal(self, signum: int) -> None:
        """Signal the kernel, except for the interrupt before its orderly end.

        There is nothing to interrupt then, and sometimes its event loop lost the interrupt.
        """
        if signum == signal.SIGINT and cast("Any", self.parent).shutting_down:
            return
        await super().send_signal(signum)

    async def shutdown_requested(self, restart: bool = False) -> None:
        """Wait up to 1 s for the end of the kernel, because its manager checks only every 0.1 s."""
        del restart
        for _ in range(round(GRACE_S / 2 / POLL_INTERVAL_S)):
            if await self.poll() is not None:
                return
            await asyncio.sleep(POLL_INTERVAL_S)


class WarmClient(PapermillNotebookClient):
    """Papermill's client, which runs a notebook, with prepared kernels from a source."""

    source: KernelSource
    preload: tuple[str, ...]
    environment: Mapping[str, str]

    def create_kernel_manager(self) -> KernelManager:
        """Create a manager that takes an IPython kernel from the source, and starts any other."""
        manager: KernelManager = super().create_kernel_manager()
        if manager.kernel_spec is None or LAUNCHER not in manager.kernel_spec.argv:
            return manager
        manager.connection_file = str(Path(self.source.folder) / f"{uuid4()}.json")
        manager.shutdown_wait_time = GRACE_S
        provisioner = WarmProvisioner(
            kernel_id=str(uuid4()), kernel_spec=manager.kernel_spec, parent=manager
        )
        provisioner.source, provisioner.preload = self.source, self.preload
        manager.provisioner = provisioner
        self.extra_arguments = [*self.extra_arguments, QUIET_FLAG]
        return manager

    def execute(self, **kwargs: Any) -> Any:
        """Run all cells of the notebook in a kernel that is then ended; return the notebook."""
        self.reset_execution_trackers()
        with self.setup_kernel(**kwargs):
            self.papermill_execute_cells()
            self.set_widgets_metadata()
            # The kernel may end in order here; otherwise `setup_kernel` shuts it down.
            run_sync(self._request_shutdown)()
        return self.nb

    async def _request_shutdown(self) -> None:
        manager = cast("KernelManager", self.km)
        await ensure_async(manager.request_shutdown())

    async def async_start_new_kernel_client(self) -> Any:
        """Start a client of the kernel, and return it once messages arrive in both directions."""
        client: Any = cast("KernelManager", self.km).client()
        self.kc = client
        try:
            client.start_channels(stdin=False, hb=False, control=False)
            await self._await_kernel(client)
            self._set_variables(client)
        except Exception:
            await self._async_cleanup_kernel()
            raise
        client.allow_stdin = False
        return client

    start_new_kernel_client = run_sync(async_start_new_kernel_client)

    def papermill_execute_cells(self) -> None:
        """Run the cells; a kernel that hangs or is dead is killed, not asked to end."""
        try:
            super().papermill_execute_cells()
        except BaseException:
            self.shutdown_kernel = "immediate"
            raise

    def _set_variables(self, client: Any) -> None:
        """Set the variables that only this notebook has, before its first cell.

        The kernel's start is too early, because a spare kernel may serve any notebook of its kind.
        """
        if self.environment and isinstance(getattr(self.km, "provisioner", None), WarmProvisioner):
            code = f"__import__('os').environ.update({dict(self.environment)!r})"
            client.execute(code, silent=True, store_history=False)

    async def _await_kernel(self, client: Any) -> None:
        """Ask the kernel for its name until it answers and its messages arrive, or raise an error.

        A kernel welcomes a new listener. An older kernel does not, so its idle message is awaited.
        """
        give_up = time.monotonic() + self.startup_timeout
        while time.monotonic() < give_up:
            request_id = client.kernel_info()
            try:
                while True:
                    message = await client.get_iopub_msg(timeout=ANSWER_TIMEOUT_S)
                    idle = message["content"].get("execution_state") == "idle"
                    answers = message["parent_header"].get("msg_id") == request_id
                    if message["msg_type"] == "iopub_welcome" or (idle and answers):
                        break
                reply = await client.get_shell_msg(timeout=ANSWER_TIMEOUT_S)
                self.nb.metadata["language_info"] = reply["content"]["language_info"]
                return
            except Empty:
                await self._async_check_alive()
        raise RuntimeError(f"The kernel did not answer within {self.startup_timeout} s.")


class WarmEngine(Engine):
    """The engine that is registered with papermill as `toolkit-warm`."""

    @classmethod
    def execute_managed_notebook(
        cls,
        nb_man: Any,
        kernel_name: str,
        start_timeout: int = 60,
        execution_timeout: int | None = None,
        source: KernelSource | None = None,
        preload: tuple[str, ...] | None = None,
        environment: Mapping[str, str] = NO_VARIABLES,
        **kwargs: Any,
    ) -> Any:
        """Run a notebook for papermill in a kernel from a source of kernels, and return it.

        Args:
            start_timeout: maximum seconds until a kernel answers.
            source: source of kernels. Default: a source that lives as long as this process.
            preload: imports that kernels may have done. Default: the imports of the notebook.
            environment: variables that only this notebook has.
        """
        for name in ("input_path", "startup_timeout"):
            kwargs.pop(name, None)
        timeout = kwargs.pop("timeout", None)
        client = WarmClient(
            nb_man,
            kernel_name=kernel_name,
            timeout=execution_timeout or timeout,
            startup_timeout=start_timeout,
            log=logger,
            **kwargs,
        )
        client.source = source or get_shared_source()
        client.preload = find_preloads(nb_man.nb) if preload is None else preload
        client.environment = environment
        return client.execute()


@cache
def get_shared_source() -> KernelSource:
    """Return the source for callers that name none: papermill's command line and API."""
    source = KernelSource(fork=True, spares=1)
    atexit.register(source.close)
    return source


def register_engine() -> None:
    """Register the engine with papermill, as its entry point does if this package is installed."""
    papermill_engines.register(ENGINE_NAME, WarmEngine)
