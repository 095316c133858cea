"""The routes, the client, the command line and the reference are one surface.

Nothing here is declared: every method of the client and every command is carried out against a
service that notes which operation each request is, and answers as its OpenAPI document says.
"""

import hashlib
import inspect
import re
from collections.abc import Callable
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
from toolkit.contract.operations.entry import matches_path
from toolkit.contract.operations.table import OPERATIONS

ROOT = Path(__file__).parent.parent
ID = "run_x"
BYTES = b"bytes"
WORKFLOW = Workflow("w")
WORKFLOW.add("a", "llm.generate", objective="x")

# What the methods of the client are given that need more than the id of a resource.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "account.create": ("ada@example.org",),
    "agents.create": ("card-maker", "A card about {topic}"),
    "artifacts.upload": (b"bytes",),
    "compute.create": ("easel", "NVIDIA GeForce RTX 4090"),
    "compare": (ID, ID),
    "connections.connect": ("text",),
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
    "workflows.create": (WORKFLOW.to_dict(),),
    "workflows.fork": ("wfl_x", "a"),
    "workflows.submit": (WORKFLOW,),
}
# Where a method is not named as its operation is (see `named`).
NAMED = {
    ("GET", "/v1/account/keys"): "api_keys.list",  # a resource of its own
    ("POST", "/v1/account/keys"): "api_keys.create",
    ("GET", "/v1/account/keys/{id}"): "api_keys.get",
    ("POST", "/v1/account/keys/{id}/rotate"): "api_keys.rotate",
    ("DELETE", "/v1/account/keys/{id}"): "api_keys.delete",
    ("DELETE", "/v1/providers/connections/{id}/share"): "connections.unshare",
    ("POST", "/v1/artifacts"): "artifacts.upload",  # a file is not made of fields
    ("GET", "/v1/health"): "health",  # of the service itself
    ("POST", "/v1/route"): "route",
    ("POST", "/v1/tasks/{id}/reviews"): "tasks.submit_review",
}
# What commands are given that need more than the id of a resource.
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
    "workflows fork": ["wfl_x", "a"],
    "workflows run": ["workflow.yaml"],
    "workflows submit": ["workflow.yaml"],
}
# The commands that ask nothing of a service.
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
    "login": "asks a server that it names itself, and keeps a profile",
    "logout": "deletes a profile",
    "migrate": "moves a data directory into a database",
    "profiles": "lists profiles",
    "doctor": "examines a data directory",
    "verify": "makes one call of each kind through a client of its own",
    "prune": "takes old work out of a data directory",
    "serve": "is the service",
}


Asked = Callable[[str], set[str]]


@pytest.fixture
def operations() -> dict[str, tuple[str, str]]:
    """Method and path of every operation, by its id."""
    return {operation.id: (operation.method, operation.path) for operation in OPERATIONS}


class ExampleService:
    """Answers every operation with an example of its own schema, and notes which they were."""

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
        for one in (body, body.get("data")):
            if isinstance(one, dict) and "sha256" in one:
                one |= {"sha256": hashlib.sha256(BYTES).hexdigest(), "size_bytes": len(BYTES)}
        if operation.form == "events":
            body["data"]["items"] = []
        return httpx.Response(operation.status, json=body)

    def example(self, schema: dict[str, Any], name: str = "") -> Any:
        """Something that a schema allows: work is completed, and what may be null is."""
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
    """The public methods of a client and of its areas, such as `runs.create`."""
    found = {}
    client = kind("http://service.test", "sk_live_x")
    areas = {
        name: getattr(client, name)
        for name, value in inspect.getmembers_static(kind)
        if isinstance(value, cached_property)
    }
    for prefix, owner in [("", kind), *((f"{name}.", type(area)) for name, area in areas.items())]:
        for name, function in inspect.getmembers(owner, inspect.isfunction):
            # These are about this process: its connections, its embedded engine, its functions.
            here = name in ("close", "aclose", "take_up", "register")
            # A call of one capability is a run: tests/client/test_capability_calls.py.
            is_run = "CapabilityCalls." in function.__qualname__
            if not (is_run or here or name.startswith("_")):
                found[prefix + name] = inspect.signature(function)
    return found


METHODS = methods(Client)


def arguments(name: str) -> tuple[Any, ...]:
    """Return the arguments that a method is called with here."""
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
    """The operations that a method of the client asks for."""
    service = ExampleService()
    with Client("http://service.test", "k", transport=httpx.MockTransport(service)) as client:
        method: Any = client
        for part in name.split("."):
            method = getattr(method, part)
        answer = method(*arguments(name))
        if inspect.isgenerator(answer):
            list(answer)
    return service.seen


@pytest.mark.parametrize("name", METHODS)
def test_a_method_of_the_client_has_its_route(name: str) -> None:
    """Given a method, when it is called, then what it sends is a route, and is answered."""
    assert list_sent_operations(name), f"client.{name} asks the service for nothing."


def get_method_name(operation: str) -> str:
    """The method of an operation: `area_verb` is `area.verb`, by the last area that is named.

    What is read by its id is got; `catalog_gpus_list` is `catalog.gpus`.
    """
    areas = {name.partition(".")[0] for name in METHODS if "." in name}
    words = operation.split("_")
    at = max((i for i, word in enumerate(words[:-1]) if word in areas), default=0)
    verb = "_".join(words[at + 1 :])
    return f"{words[at]}.{'get' if verb == 'read' else re.sub('_(list|read)$', '', verb)}"


def test_every_operation_has_its_method(operations: dict[str, tuple[str, str]]) -> None:
    """Given the routes, then each is what the method of its name sends."""
    missing = []
    for operation, route in operations.items():
        name = NAMED.get(route) or get_method_name(operation)
        if name not in METHODS or operation not in list_sent_operations(name):
            missing.append(f"client.{name} that sends {' '.join(route)} ({operation})")
    assert not missing, f"Add to toolkit/client/_async/resources/: {'; '.join(missing)}."
    stale = set(NAMED) - set(operations.values())
    assert not stale, f"Take out of NAMED in {__file__}: {stale}."


def test_both_clients_have_the_same_methods() -> None:
    """Given the two clients, then methods, parameters, defaults and types are the same."""
    spelled = {name: str(signature) for name, signature in METHODS.items()}
    assert spelled == {
        name: re.sub(r"_async\b", "_sync", str(signature)).replace("Async", "")
        for name, signature in methods(AsyncClient).items()
    }


def commands() -> dict[str, Any]:
    """Every command that does something, such as `runs cancel`."""
    found: dict[str, Any] = {}

    def walk(command: Any, path: str) -> None:
        if not hasattr(command, "commands"):
            found[path] = command
            return
        for name, below in command.commands.items():
            if not below.hidden:
                walk(below, f"{path} {name}".strip())

    walk(get_command(app), "")
    return found


COMMANDS = commands()


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """Tells the operations that a command asks for; each command is carried out once."""
    folder = tmp_path_factory.mktemp("commands")
    (folder / "workflow.yaml").write_text("name: w\nnodes: []\n", encoding="utf-8")

    @cache
    def record_operations(name: str) -> set[str]:
        needed = [parameter.name for parameter in COMMANDS[name].params if parameter.required]
        known = name in LINES or needed in ([], ["id"])
        assert known, f"Add a row for `toolkit {name}` to LINES in {__file__}."
        service = ExampleService()

        def connect(where: object, makes: str) -> Client:
            return Client("http://service.test", "k", transport=httpx.MockTransport(service))

        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.setattr("toolkit.cli.options.open_client", connect)
            line = [*name.split(), *LINES.get(name, [ID] * len(needed))]
            done = CliRunner().invoke(app, line, catch_exceptions=False)
        assert done.exit_code == 0 or name == "connections test", done.output
        return service.seen

    return record_operations


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - set(HERE)))
def test_a_command_has_its_routes(asked: Asked, name: str) -> None:
    """Given a command, when it is carried out, then what it asks for is answered and shown."""
    assert asked(name), f"`toolkit {name}` asks for nothing: see HERE."


def test_every_operation_has_its_command(
    asked: Asked, operations: dict[str, tuple[str, str]]
) -> None:
    """Given the routes, then each can be reached from a shell."""
    reached = [asked(name) for name in COMMANDS if name not in HERE]
    missing = set(operations) - set().union(*reached)
    assert not missing, f"Add to toolkit/cli/resources a command for each of {sorted(missing)}."
    assert set(HERE) <= set(COMMANDS)


def test_the_tables_of_this_test_are_current() -> None:
    """Given the samples, then there is none for what is no longer there."""
    assert set(ARGUMENTS) <= set(METHODS)
    assert set(LINES) <= set(COMMANDS)


def test_the_reference_is_current(
    operations: dict[str, tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Given the generator, when it checks, then nothing is stale, and nothing is left out."""
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
