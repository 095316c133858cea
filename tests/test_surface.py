"""The routes, the client, the command line and the reference have the same operations.

The test needs no list of operations: every method of the client and every command runs against a
service that records the operation of each request, and answers by its OpenAPI document.
"""

import base64
import hashlib
import inspect
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from scripts import public_names, reference
from scripts.openapi_document.document import build_openapi
from scripts.openapi_document.schemas import get_envelope, make_schema_ref
from toolkit.cli import app
from toolkit.client import AsyncClient, Client, Workflow
from toolkit.contract.errors import RequestError
from toolkit.contract.operations.entry import matches_path
from toolkit.contract.operations.table import OPERATIONS

ROOT = Path(__file__).parent.parent
ID = "run_x"
BYTES = b"bytes"
WORKFLOW = Workflow("w")
WORKFLOW.add("a", "llm.generate", objective="x")

# Arguments of the client's methods that need more than the id of a resource.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "account.create": ("ada@example.org",),
    "agents.create": ("card-maker", "A card about {topic}"),
    "artifacts.upload": (b"bytes",),
    "compute.create": ("easel", "NVIDIA GeForce RTX 4090"),
    "compare": (ID, ID),
    "connections.connect": ("text",),
    "conversation": ("tides",),
    "embed": ("tea",),
    "transcribe": (b"tea",),
    "connections.create": ("openai", "environment", "OPENAI_API_KEY"),
    "connections.share": ("prv_x", "all"),
    "events": (ID,),
    "jobs.create": ("image", "cmp_x", {}),
    "map": ("llm.generate", [{"text": "tea"}]),
    "plans.create": ("a card",),
    "read": ("/runs",),
    "route": ("llm.generate", {}),
    "runs.create": ("llm.generate", {}),
    "storage.create": ("disk", 10),
    "tasks.create": ("a card",),
    "tasks.submit_review": ("tsk_x", "pass"),
    "templates.create": ("worker", "example/worker:1"),
    "maps.add_rows": ("map_x", []),
    "maps.create": ({},),
    "workflows.create": (WORKFLOW.to_dict(),),
    "workflows.fork": ("wfl_x", "a"),
    "workflows.submit": (WORKFLOW,),
}
# Methods whose names differ from their operations (see `get_method_name`).
NAMED = {
    ("GET", "/v1/account/keys"): "api_keys.list",  # a resource of its own
    ("POST", "/v1/account/keys"): "api_keys.create",
    ("GET", "/v1/account/keys/{id}"): "api_keys.get",
    ("POST", "/v1/account/keys/{id}/rotate"): "api_keys.rotate",
    ("DELETE", "/v1/account/keys/{id}"): "api_keys.delete",
    ("DELETE", "/v1/providers/connections/{id}/share"): "connections.unshare",
    ("POST", "/v1/artifacts"): "artifacts.upload",  # because a file has no fields
    ("GET", "/v1/health"): "health",  # of the service itself
    ("POST", "/v1/route"): "route",
    ("POST", "/v1/maps/{id}/rows"): "maps.add_rows",
    ("POST", "/v1/tasks/{id}/reviews"): "tasks.submit_review",
}
# Arguments of commands that need more than the id of a resource.
LINES: dict[str, list[str]] = {
    "account open": ["ada@example.org"],
    "agents create": ["card-maker", "A card about {topic}"],
    "agents run": ["card-maker", "topic=tea"],
    "artifacts save": [ID, "made.bin"],
    "artifacts upload": ["workflow.yaml"],
    "capabilities show": ["llm.generate"],
    "compute create": ["easel", "NVIDIA GeForce RTX 4090"],
    "connections connect": ["text"],
    "connections create": ["openai", "OPENAI_API_KEY"],
    "connections share": ["prv_x", "--all"],
    "connections test": ["prv_x"],
    "connections trust": ["prv_x"],
    "connections unshare": ["prv_x"],
    "jobs create": ["image", "cmp_x"],
    "compare": ["run_x", "run_x"],
    "plans create": ["a card"],
    "route": ["llm.generate", "objective=x"],
    "run": ["llm.generate", "objective=x"],
    "runs create": ["llm.generate", "objective=x"],
    "storage create": ["disk", "10"],
    "task": ["a card"],
    "tasks create": ["a card"],
    "tasks review": ["tsk_x", "pass"],
    "templates create": ["worker", "example/worker:1"],
    "map": ["llm.generate", "table.csv", "objective=On {n}"],
    "workflows fork": ["wfl_x", "a"],
    "workflows run": ["workflow.yaml"],
    "workflows submit": ["workflow.yaml"],
}
# The commands that call no service.
HERE = {
    **{
        f"account {verb}": "is about the accounts of a data directory, for its operator"
        for verb in (
            *("create", "demote", "disable", "enable", "keys", "limit", "list", "promote"),
            "recover",
        )
    },
    "backup": "copies a data directory",
    "batch": "runs notebooks",
    "demo": "runs a notebook",
    "login": "calls the server that it names, and stores a profile",
    "logout": "deletes a profile",
    "migrate": "moves a data directory into a database",
    "profiles": "lists profiles",
    "doctor": "examines a data directory",
    "verify": "makes one call of each kind through a client of its own",
    "prune": "deletes old work from a data directory",
    "serve": "is the service",
}


ListOperations = Callable[[str], set[str]]


@pytest.fixture
def operations() -> dict[str, tuple[str, str]]:
    """The method and path of every operation, by id."""
    return {operation.id: (operation.method, operation.path) for operation in OPERATIONS}


class ExampleService:
    """Answers every operation with an example of its schema, and records the operations."""

    def __init__(self) -> None:
        self.schemas = build_openapi()["components"]["schemas"]
        self.seen: set[str] = set()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer one request."""
        method, path = request.method, request.url.path
        operation = next(o for o in OPERATIONS if o.method == method and matches_path(o.path, path))
        self.seen.add(operation.id)
        if operation.form == "bytes":
            return httpx.Response(operation.status, content=BYTES)
        body = self.example(make_schema_ref(get_envelope(operation)))
        for record in (body, body.get("data")):
            if isinstance(record, dict) and "sha256" in record:
                record |= {"sha256": hashlib.sha256(BYTES).hexdigest(), "size_bytes": len(BYTES)}
        if operation.id == "maps_create":  # a new map, to which the command adds its rows
            body["data"]["row_counts"]["total"] = 0
        if operation.id == "maps_rows_list":  # the result of the row that a command sends
            digest = hashlib.sha256(b'{"n":1}').digest()[:16]
            body["data"]["rows"][0]["digest"] = base64.urlsafe_b64encode(digest)[:22].decode()
        if operation.form == "events":
            body["data"]["items"] = []
        return httpx.Response(operation.status, json=body)

    def example(self, schema: dict[str, Any], name: str = "") -> Any:
        """Return an example of a schema: work is completed, and nullable fields are null."""
        if "$ref" in schema:
            return self.example(self.schemas[schema["$ref"].rpartition("/")[2]])
        if "anyOf" in schema:
            kinds = [kind for kind in schema["anyOf"] if kind.get("type") != "null"]
            return None if len(kinds) < len(schema["anyOf"]) else self.example(kinds[0])
        if "enum" in schema:
            return "completed" if "completed" in schema["enum"] else schema["enum"][0]
        if "examples" in schema:
            return schema["examples"][0]
        if "const" in schema:
            return schema["const"]
        if name.endswith("_at"):
            return "2026-11-20T08:00:00.000Z"
        if schema.get("format") == "date":
            return "2026-12-01"
        if schema.get("type") == "object":
            return {k: self.example(v, k) for k, v in schema.get("properties", {}).items()}
        if schema.get("type") == "array":
            return [self.example(schema["items"])]
        return {"string": "text", "integer": 1, "number": 1.0, "boolean": True}.get(
            schema.get("type", ""), {}
        )


def methods(kind: type[Client] | type[AsyncClient]) -> dict[str, inspect.Signature]:
    """Return the public methods of a client and of its areas, such as `runs.create`."""
    signatures = {}
    client = kind("http://service.test", "sk_live_x")
    areas = {
        name: getattr(client, name)
        for name, value in inspect.getmembers_static(kind)
        if isinstance(value, cached_property)
    }
    for prefix, owner in [("", kind), *((f"{name}.", type(area)) for name, area in areas.items())]:
        for name, function in inspect.getmembers(owner, inspect.isfunction):
            # These methods are about this process: its connections, its embedded engine, its
            # functions.
            is_local = name in ("close", "aclose", "take_up", "register")
            # A call of a capability is a run: tests/client/test_capability_calls.py.
            is_run = "CapabilityCalls." in function.__qualname__
            if not (is_run or is_local or name.startswith("_")):
                signatures[prefix + name] = inspect.signature(function)
    return signatures


METHODS = methods(Client)


def arguments(name: str) -> tuple[Any, ...]:
    """Return the arguments that this test calls a method with."""
    if name in ARGUMENTS:
        return ARGUMENTS[name]
    needed = [
        p.name for p in list(METHODS[name].parameters.values())[1:]
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]  # fmt: skip
    assert needed in ([], ["id"]), f"Add a row for client.{name} to ARGUMENTS in {__file__}."
    return (ID,) * len(needed)


@cache
def list_sent_operations(name: str) -> set[str]:
    """Return the operations that a method of the client requests."""
    service = ExampleService()
    with Client("http://service.test", "k", transport=httpx.MockTransport(service)) as client:
        method: Any = client
        for part in name.split("."):
            method = getattr(method, part)
        answer = None
        with suppress(RequestError):  # the artifact of the example holds no vectors for `embed`
            answer = method(*arguments(name))
        if inspect.isgenerator(answer):
            list(answer)
    return service.seen


@pytest.mark.parametrize("name", METHODS)
def test_client_methods_use_existing_routes(name: str) -> None:
    """Given a method, when it is called, then its requests match routes, and it reads responses."""
    assert list_sent_operations(name), f"client.{name} sends no request."


def get_method_name(operation: str) -> str:
    """Return the method of an operation: `area_verb` is `area.verb`, by the last area in the name.

    The verb of a read by id is `get`; `catalog_gpus_list` is `catalog.gpus`.
    """
    areas = {name.partition(".")[0] for name in METHODS if "." in name}
    words = operation.split("_")
    at = max((i for i, word in enumerate(words[:-1]) if word in areas), default=0)
    verb = "_".join(words[at + 1 :])
    return f"{words[at]}.{'get' if verb == 'read' else re.sub('_(list|read)$', '', verb)}"


def test_every_operation_has_a_client_method(operations: dict[str, tuple[str, str]]) -> None:
    """Given the routes, then the client method of the same name requests each of them."""
    missing = []
    for operation, route in operations.items():
        name = NAMED.get(route) or get_method_name(operation)
        if name not in METHODS or operation not in list_sent_operations(name):
            missing.append(f"client.{name} that sends {' '.join(route)} ({operation})")
    assert not missing, f"Add to toolkit/client/_async/resources/: {'; '.join(missing)}."
    stale = set(NAMED) - set(operations.values())
    assert not stale, f"Remove from NAMED in {__file__}: {stale}."


def test_both_clients_have_the_same_methods() -> None:
    """Given the two clients, then methods, parameters, defaults and types are the same."""
    spelled = {name: str(signature) for name, signature in METHODS.items()}
    assert spelled == {
        name: re.sub(r"_async\b", "_sync", str(signature)).replace("Async", "")
        for name, signature in methods(AsyncClient).items()
    }


def commands() -> dict[str, Any]:
    """Return every command without subcommands, such as `runs cancel`."""
    commands_by_path: dict[str, Any] = {}

    def walk(command: Any, path: str) -> None:
        if not hasattr(command, "commands"):
            commands_by_path[path] = command
            return
        for name, below in command.commands.items():
            if not below.hidden:
                walk(below, f"{path} {name}".strip())

    walk(get_command(app), "")
    return commands_by_path


COMMANDS = commands()


@pytest.fixture(scope="module")
def list_operations_of(tmp_path_factory: pytest.TempPathFactory) -> ListOperations:
    """Returns the operations that a command requests; each command runs once."""
    folder = tmp_path_factory.mktemp("commands")
    (folder / "workflow.yaml").write_text("name: w\nnodes: []\n", encoding="utf-8")
    (folder / "table.csv").write_text("n\n1\n", encoding="utf-8")

    @cache
    def record_operations(name: str) -> set[str]:
        needed = [parameter.name for parameter in COMMANDS[name].params if parameter.required]
        has_arguments = name in LINES or needed in ([], ["id"])
        assert has_arguments, f"Add a row for `toolkit {name}` to LINES in {__file__}."
        service = ExampleService()

        def connect(target: object, makes: str) -> Client:
            return Client("http://service.test", "k", transport=httpx.MockTransport(service))

        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.setattr("toolkit.cli.options.open_client", connect)
            line = [*name.split(), *LINES.get(name, [ID] * len(needed))]
            result = CliRunner().invoke(app, line, catch_exceptions=False)
        assert result.exit_code == 0 or name == "connections test", result.output
        return service.seen

    return record_operations


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - set(HERE)))
def test_commands_use_existing_routes(list_operations_of: ListOperations, name: str) -> None:
    """Given a command, when it is run, then its requests match routes, and it shows responses."""
    assert list_operations_of(name), f"`toolkit {name}` sends no request: see HERE."


def test_every_operation_has_a_command(
    list_operations_of: ListOperations, operations: dict[str, tuple[str, str]]
) -> None:
    """Given the routes, then each can be reached from a shell."""
    reached = [list_operations_of(name) for name in COMMANDS if name not in HERE]
    missing = set(operations) - set().union(*reached)
    assert not missing, f"Add to toolkit/cli/resources a command for each of {sorted(missing)}."
    assert set(HERE) <= set(COMMANDS)


def test_tables_of_arguments_are_current() -> None:
    """Given the tables of arguments, then each row has an existing method or command."""
    assert set(ARGUMENTS) <= set(METHODS)
    assert set(LINES) <= set(COMMANDS)


def test_reference_is_current(
    operations: dict[str, tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Given the generator, when it checks, then no page is stale, and no operation is missing."""
    monkeypatch.setattr("sys.argv", ["reference.py", "--check"])
    assert reference.main() == 0, capsys.readouterr().out
    pages = {
        name: (ROOT / "docs" / "reference" / f"{name}.md").read_text(encoding="utf-8")
        for name in ("http", "client", "cli")
    }
    assert [o for o in operations if f"`{o}`" not in pages["http"]] == []
    assert [m for m in METHODS if f"`client.{m}(" not in pages["client"]] == []
    assert [c for c in COMMANDS if f"`toolkit {c}" not in pages["cli"]] == []


def test_public_names_are_the_listed_names() -> None:
    """Given the list, then no name is gone, and `scripts/fix` has added each new name."""
    listed = set(public_names.LIST.read_text(encoding="utf-8").splitlines())
    names = public_names.find_names()
    gone = listed.difference(names)
    assert not gone, "Restore the names; after an intended change delete their lines in the list."
    assert not set(names) - listed, "Run scripts/fix."
