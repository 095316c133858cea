"""A client that a common generator makes of the document, used as its user would use it."""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from openapi_python_client import generate
from openapi_python_client.config import Config, ConfigFile, MetaType

from tests.conftest import Server
from tests.server.route_table import DOCUMENT, ROUTES
from tests.support.timing import wait_until
from toolkit.contract.errors import ErrorCode

PACKAGE = "generated_of_our_document"
# A resource has its record, its body, two envelopes, a page, and a class for each open object and
# each set of words in them: about two and a half for each operation.
MOST_CLASSES_FOR_EACH_OPERATION = 3


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The client that `openapi-python-client` makes of the document, to be imported."""
    folder = tmp_path_factory.mktemp("generated")
    document, made = folder / "openapi.json", folder / PACKAGE
    document.write_text(json.dumps(DOCUMENT), encoding="utf-8")
    settings = ConfigFile(post_hooks=[])  # which would format it, and nobody reads it
    config = Config.from_sources(settings, MetaType.NONE, document, "utf-8", True, made)
    complaints = generate(config=config)
    assert [(one.header, one.detail) for one in complaints] == []
    sys.path.insert(0, str(folder))
    yield made
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def module(name: str) -> ModuleType:
    """A module of the generated package."""
    return importlib.import_module(f"{PACKAGE}.{name}")


def call_operation(tag: str, operation: str, **given: Any) -> Any:
    """Call an operation, and return its answer as the generated client reads it."""
    return module(f"api.{tag}.{operation}").sync(**given)


def poll_until_over(read: Callable[[], Any]) -> Any:
    """Work once it is over, asked for as one who knows only the specification would."""
    wait_until(lambda: read().status in ("completed", "failed", "cancelled"))
    return read()


def test_it_has_a_module_for_each_operation_and_few_classes(package: Path) -> None:
    """Given 74 operations and more, then each is a function, and classes are said once."""
    functions = {path.stem for path in (package / "api").glob("*/*.py")} - {"__init__"}
    assert functions == {route.name for route in ROUTES}
    classes = [path.stem for path in (package / "models").glob("*.py") if path.stem != "__init__"]
    assert len(classes) < MOST_CLASSES_FOR_EACH_OPERATION * len(ROUTES), sorted(classes)
    errors = {name for name in classes if "error" in name or "response_4" in name}
    assert errors == {"error_envelope", "error_info"}


def test_it_goes_from_account_to_artifact(package: Path, server: Server) -> None:
    """Given the generated client, then it signs up, connects, runs, submits and polls."""
    models, client = module("models"), module("client")
    body = models.AccountCreate(email="ada@example.org")
    with client.Client(base_url=server.url) as anyone:
        key = call_operation("account", "account_create", client=anyone, body=body).data.api_key
    with client.AuthenticatedClient(base_url=server.url, token=key) as ada:
        use(ada, models)


def use(ada: Any, models: ModuleType) -> None:
    """From a connection to an artifact, each answer read as the generated class says."""
    link = models.ConnectionCreate.from_dict(
        {"provider": "minimax", "connection_type": "environment", "secret_ref": "MINIMAX_API_KEY"}
    )
    made = call_operation("connections", "providers_connections_create", client=ada, body=link)
    assert made.id.startswith("prv_")
    given = {"name": "llm.generate", "input": {"objective": "A line about tea"}}
    run = call_operation("runs", "runs_create", client=ada, body=models.RunCreate.from_dict(given))
    done = poll_until_over(lambda: call_operation("runs", "runs_read", client=ada, id=run.id))
    assert done.data.output.additional_properties["text"]
    assert done.data.connection_id == made.id
    nodes = [
        {"id": "facts", "capability": "research.gather", "input": {"topic": "Tea"}},
        {"id": "copy", "capability": "llm.generate", "input": {"objective": "A line"},
         "depends_on": ["facts"]},
    ]  # fmt: skip
    flow = models.WorkflowCreate.from_dict({"name": "two", "nodes": nodes})
    accepted = call_operation("workflows", "workflows_create", client=ada, body=flow)
    over = poll_until_over(
        lambda: call_operation("workflows", "workflows_read", client=ada, id=accepted.id)
    )
    assert [node.status.value for node in over.data.nodes] == ["completed", "completed"]
    content = call_operation(
        "artifacts", "artifacts_read", client=ada, id=over.data.final_artifact_id
    )
    assert content.data.size_bytes > 0
    page = call_operation("runs", "runs_list", client=ada, limit=5)
    assert [one.id for one in page.data.items] == [run.id]


def test_its_errors_are_of_one_class(package: Path, server: Server) -> None:
    """Given what is refused, then the generated client reads the envelope that every error has."""
    models, client = module("models"), module("client")
    with client.AuthenticatedClient(base_url=server.url, token="sk_live_none") as nobody:
        refused = call_operation("runs", "runs_list", client=nobody)
    assert isinstance(refused, models.ErrorEnvelope)
    assert refused.error.code == ErrorCode.UNAUTHENTICATED.name
    assert refused.error.request_id.startswith("req_")
    body = models.AccountCreate(email="no address")
    with client.Client(base_url=server.url) as anyone:
        wrong = call_operation("account", "account_create", client=anyone, body=body)
    assert (wrong.error.code, wrong.error.details[0].path) == ("INVALID_REQUEST", "email")
