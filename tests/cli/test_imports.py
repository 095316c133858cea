"""The imports of a command: who asks a server does not wait for what asking does not need."""

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import Server

# What an engine, a notebook or a picture needs, and what takes long to import.
HEAVY = {
    "IPython", "alembic", "click", "fastapi", "ipywidgets", "matplotlib", "networkx", "numpy",
    "pandas", "papermill", "pydantic", "pydantic_settings", "rich", "sqlalchemy", "starlette",
    "structlog", "uvicorn", "yaml",
}  # fmt: skip
FLOORS = {f"toolkit.{name}" for name in ("engine", "local", "server", "settings", "store")}
# As the installed command does it; then one line of what it came to import.
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
    """The modules that a command imports, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *line],
        env={**os.environ, **environment}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stderr.strip() in ("", "There are none."), done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "line", ["--version", "runs", "capabilities list", "whoami", "account show --json"]
)
def test_a_command_imports_what_it_needs(service: Server, key: str, line: str) -> None:
    """Given a server, when it is asked, then nothing is imported that only an engine needs.

    A time would depend on the machine; what is imported does not, and takes nearly all of it.
    """
    found = list_imports(*line.split(), TOOLKIT_BASE_URL=service.url, TOOLKIT_API_KEY=key)
    assert found & (HEAVY | FLOORS) == set()
    areas = {name for name in found if name.startswith("toolkit.cli.resources.")}
    assert areas <= {f"toolkit.cli.resources.{line.split()[0]}"}
