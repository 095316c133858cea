"""The imports of a client of a server: the engine is loaded by `Client.local` alone."""

import ast
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import toolkit
from toolkit.client._client_base import ClientBase

# Modules that an engine, a server, a notebook or a picture needs, and modules with a slow import.
HEAVY = {
    "IPython", "PIL", "aiohttp", "alembic", "anywidget", "fastapi", "fontTools", "fsspec",
    "httpx_aiohttp", "ipykernel", "ipywidgets", "jupyter_client", "lameenc", "matplotlib",
    "nbclient", "nbformat", "networkx", "numpy", "pandas", "papermill", "prometheus_client",
    "pydantic_settings", "sqlalchemy", "starlette", "structlog", "traitlets", "typer",
    "uvicorn", "yaml",
}  # fmt: skip
FLOORS = {
    f"toolkit.{name}"
    for name in (
        "assembly", "batch", "capabilities", "cassettes", "cli", "engine", "local", "notebook",
        "observability", "planning", "plugins", "sandbox", "secrets", "server", "settings",
        "store", "vendors", "verify", "workers",
    )
}  # fmt: skip
SERVED = """
from toolkit import {kind}
import functools, httpx, inspect
client = {kind}(base_url="http://service.test", api_key="sk_live_x")
"""
RUN = """
JOB = dict(
    id="job_x", run_id="run_x", capability="llm.generate", version="1.0.0", status="completed",
    created_at="2026-11-20T08:00:00.000Z", output=dict(text="Tides."),
)
RUN = {**JOB, "id": "run_x", "target": "capability", "name": "llm.generate", "input": {}}
reply = httpx.MockTransport(lambda request: httpx.Response(200, json=dict(data=RUN)))
client = Client(base_url="http://service.test", api_key="sk_live_x", transport=reply)
run = client.runs.create("llm.generate", dict(objective="One line on tides"))
assert run.wait(progress=False).status == "completed"
assert repr(run) and run.to_dict()
"""
AREAS = """
for name, value in inspect.getmembers_static({kind}):
    if isinstance(value, functools.cached_property):
        getattr(client, name)
"""


def list_imports(code: str) -> set[str]:
    """Return the modules that a program imports, in a separate process."""
    process = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return set(json.loads(process.stdout.splitlines()[-1]))


@pytest.mark.parametrize("kind", ["Client", "AsyncClient"])
def test_client_of_a_server_loads_no_engine(kind: str) -> None:
    """Given a server's address, when a client is made, then modules of the engine are not loaded.

    A time would depend on the machine; the imports do not, and take nearly all of the time.
    """
    modules = list_imports(SERVED.format(kind=kind))
    assert modules & (HEAVY | FLOORS) == set()
    assert "pydantic.main" not in modules, "Records are created on demand."
    assert not any(name.startswith("toolkit.client._") and "resources." in name for name in modules)


@pytest.mark.parametrize("kind", ["Client", "AsyncClient"])
def test_areas_of_the_client_load_no_engine(kind: str) -> None:
    """Given a client of a server, when each of its areas is used, then no engine is loaded."""
    modules = list_imports((SERVED + AREAS).format(kind=kind))
    assert modules & (HEAVY | FLOORS) == set()


def test_run_at_a_server_loads_no_engine() -> None:
    """Given a server, when a run is created, waited for and shown, then no engine is loaded."""
    assert list_imports(SERVED.format(kind="Client") + RUN) & (HEAVY | FLOORS) == set()


def test_package_alone_loads_nothing() -> None:
    """Given `import toolkit`, then no other module of ours or of others is loaded."""
    bare = list_imports("import importlib, sys, typing")
    modules = list_imports("import importlib, sys, typing, toolkit") - bare
    assert modules == {"toolkit"}


def test_embedded_client_loads_the_engine() -> None:
    """Given `Client.local`, then the engine is loaded, by the names that these tests check."""
    modules = list_imports(
        "import tempfile\nfrom toolkit import Client\n"
        "Client.local(tempfile.mkdtemp(), sandbox=True).close()"
    )
    assert modules >= {"toolkit.engine", "toolkit.local", "toolkit.server", "toolkit.store"}
    assert "sqlalchemy" in modules


def test_embedded_run_loads_only_needed_modules() -> None:
    """Given the sandbox, when a text is made, then only the wire of its vendor is loaded.

    Graphs, checks, pictures, grammars of plans and the other database are not loaded either.
    """
    modules = list_imports(
        "import tempfile\nfrom toolkit import Client\n"
        "with Client.local(tempfile.mkdtemp(), sandbox=True) as client:\n"
        "    made = client.runs.create('llm.generate', dict(objective='One line on tides'))\n"
        "    assert made.wait(progress=False).output['text']"
    )
    used = {"pydantic_settings", "sqlalchemy", "starlette"}
    assert modules & (HEAVY - used | {"py3langid", "sqlalchemy.dialects.postgresql"}) == set()
    unused = ("cassettes", "media.text_parts", "planning.keywords", "planning.review.node_checks")
    assert modules & {f"toolkit.{name}" for name in unused} == set()
    wires = {name for name in modules if name.startswith("toolkit.sandbox.wires.")}
    assert wires == {"toolkit.sandbox.wires.minimax"}


def test_embedded_client_needs_no_starlette() -> None:
    """Given `Client.local`, when it starts and makes a run, then no HTTP module is loaded."""
    modules = list_imports(
        "import tempfile\nfrom toolkit import Client\n"
        "with Client.local(tempfile.mkdtemp()) as client:\n"
        "    card = dict(title='Tea', width=300, height=200)\n"
        "    run = client.runs.create('composition.layout', card).wait(progress=False)\n"
        "    assert run.status == 'completed'"
    )
    assert not {name for name in modules if name.partition(".")[0] in {"starlette", "multipart"}}
    assert not {name for name in modules if name.startswith("toolkit.server.http")}


def test_files_of_an_embedded_client_need_no_app() -> None:
    """Given `Client.local`, when files are stored and read, then the HTTP app is not loaded."""
    modules = list_imports(
        "import tempfile, pathlib\nfrom toolkit import Client\n"
        "folder = pathlib.Path(tempfile.mkdtemp())\n"
        "(folder / 'file').write_bytes(bytes(3_000_000))\n"
        "with Client.local(folder / 'data', settings=None) as client:\n"
        "    for source in (b'text', folder / 'file'):\n"
        "        artifact = client.artifacts.upload(source)\n"
        "        saved = artifact.save(folder / 'saved').read_bytes()\n"
        "        assert saved == client.artifacts.content(artifact.id) == artifact.content()\n"
        "        assert len(saved) == artifact.size_bytes"
    )
    assert not modules & {"toolkit.server.app", "toolkit.server.http.endpoint", "uvicorn"}


def test_client_classes_are_unique() -> None:
    """Given all modules, then `Client` and `AsyncClient` are each the name of one class."""
    names = Counter(
        node.name
        for path in Path(toolkit.__path__[0]).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert (names["Client"], names["AsyncClient"]) == (1, 1)
    for kind in (toolkit.Client, toolkit.AsyncClient):
        assert "local" in vars(ClientBase)
        bases = [base.__name__ for base in kind.__mro__[1:]]
        assert bases == ["ClientBase", "HasKnownNames", "ABC", "Generic", "object"]
