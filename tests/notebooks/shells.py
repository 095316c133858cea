"""An IPython shell on the sandbox, for several tests of notebooks."""

import atexit
import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

import toolkit
from tests.conftest import clear_environment


class NotebookShell:
    """A shell that runs cells as a notebook does, and captures the output of a person's screen."""

    def __init__(self) -> None:
        InteractiveShell.clear_instance()
        self.ip = InteractiveShell.instance()
        self.ip.colors = "nocolor"

    def run(self, cell: str) -> str:
        """Run a cell, and return its output."""
        output = io.StringIO()
        with redirect_stdout(output), redirect_stderr(output):
            self.ip.run_cell(cell)
        return output.getvalue().strip()

    def __call__(self, cell: str) -> Any:
        """Run a cell, and return its result or raise its error."""
        result = self.ip.run_cell(cell)
        result.raise_error()
        return result.result

    def complete(self, cell: str) -> list[Any]:
        """Return the completions at the end of a cell."""
        with provisionalcompleter():
            return list(self.ip.Completer.completions(cell, len(cell)))


CLIENT = (
    "from toolkit import AsyncClient, Client, Workflow\nclient = toolkit_client = Client.local()"
)


@contextmanager
def open_notebook_shell(folder: Path, setup: str = CLIENT) -> Iterator[NotebookShell]:
    """Open a shell on a sandbox with its data in a folder, where the setup makes a client."""
    with pytest.MonkeyPatch.context() as patch:
        clear_environment(patch)
        patch.setenv("TOOLKIT_SANDBOX", "true")
        patch.setenv("TOOLKIT_DATA_DIR", str(folder / "data"))
        patch.setenv("IPYTHONDIR", str(folder / "ipython"))
        patch.chdir(folder)
        for name in ("AsyncClient", "Client", "Workflow"):  # as in a new process
            patch.delitem(vars(toolkit), name, raising=False)
        shell = NotebookShell()
        try:
            shell.run(setup)
            yield shell
        finally:
            names = shell.ip.user_ns
            (names.get("client") or names["toolkit_client"]).close()
            shell.ip.atexit_operations()
            atexit.unregister(shell.ip.atexit_operations)
            InteractiveShell.clear_instance()
