"""The imports of a command that asks a server: no module that only an engine needs."""

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import Server

# Modules that an engine, a notebook or a picture needs, and modules with a slow import.
HEAVY = {
    "IPython", "alembic", "click", "fastapi", "ipywidgets", "matplotlib", "networkx", "numpy",
    "pandas", "papermill", "pydantic", "pydantic_settings", "rich", "sqlalchemy", "starlette",
    "structlog", "uvicorn", "yaml",
}  # fmt: skip
FLOORS = {f"toolkit.{name}" for name in ("engine", "local", "server", "settings", "store")}
# Runs a command as the installed script does, then prints the imported modules.
PROGRAM = """
import json, sys
from toolkit.cli import main
try:
    main()
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)))
"""


def list_imports(*line: str, **environment: str) -> set[str]:
    """Return the modules that a command imports, in a separate process."""
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, *line],
        env={**os.environ, **environment}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert process.stderr.strip() in ("", "There are none."), process.stderr
    return set(json.loads(process.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "line", ["--version", "runs", "capabilities list", "whoami", "account show --json"]
)
def test_command_to_a_server_imports_no_engine(service: Server, key: str, line: str) -> None:
    """Given a server, when a command asks it, then no module that only an engine needs is loaded.

    A time would depend on the machine; the imports do not, and take nearly all of the time.
    """
    modules = list_imports(*line.split(), TOOLKIT_BASE_URL=service.url, TOOLKIT_API_KEY=key)
    assert modules & (HEAVY | FLOORS) == set()
    areas = {name for name in modules if name.startswith("toolkit.cli.resources.")}
    assert areas <= {f"toolkit.cli.resources.{line.split()[0]}"}
