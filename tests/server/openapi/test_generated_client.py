"""A client that a common generator builds from the document, used like its user would."""

import importlib
import json
import re
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
# Each operation needs about two and a half classes: record, body, envelopes, page, open objects and
# enumerations.
MAX_CLASSES_PER_OPERATION = 3


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The importable client that `openapi-python-client` generates from the document."""
    folder = tmp_path_factory.mktemp("generated")
    document, package_folder = folder / "openapi.json", folder / PACKAGE
    document.write_text(json.dumps(DOCUMENT), encoding="utf-8")
    settings = ConfigFile(post_hooks=[])  # formatting is not needed
    config = Config.from_sources(settings, MetaType.NONE, document, "utf-8", True, package_folder)
    complaints = generate(config=config)
    assert [(complaint.header, complaint.detail) for complaint in complaints] == []
    sys.path.insert(0, str(folder))
    yield package_folder
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def import_module(name: str) -> ModuleType:
    """Import a module of the generated package."""
    return importlib.import_module(f"{PACKAGE}.{name}")


def call_operation(tag: str, operation: str, **arguments: Any) -> Any:
    """Call an operation, and return its parsed answer."""
    return import_module(f"api.{tag}.{operation}").sync(**arguments)


def poll_until_ended(read: Callable[[], Any]) -> Any:
    """Poll until the work has ended, and return it."""
    wait_until(lambda: read().status in ("completed", "failed", "cancelled"))
    return read()


def test_has_a_module_per_operation_and_few_classes(package: Path) -> None:
    """Given the document, then each operation is a function, and no class occurs twice."""
    functions = {path.stem for path in (package / "api").glob("*/*.py")} - {"__init__"}
    assert functions == {route.name for route in ROUTES}
    classes = [path.stem for path in (package / "models").glob("*.py") if path.stem != "__init__"]
    assert len(classes) < MAX_CLASSES_PER_OPERATION * len(ROUTES), sorted(classes)
    errors = {name for name in classes if re.search(r"(?<!on_)error|response_4", name)}
    assert errors == {"error_envelope", "error_info"}


def test_runs_work_from_account_to_artifact(package: Path, server: Server) -> None:
    """Given the generated client, then it signs up, connects, runs, submits and polls."""
    models, client = import_module("models"), import_module("client")
    body = models.AccountCreate(email="ada@example.org")
    with client.Client(base_url=server.url) as open_client:
        key = call_operation(
            "account", "account_create", client=open_client, body=body
        ).data.api_key
    with client.AuthenticatedClient(base_url=server.url, token=key) as ada:
        use(ada, models)


def use(ada: Any, models: ModuleType) -> None:
    """Connect, run, submit and poll, reading each answer by its generated class."""
    link = models.ConnectionCreate.from_dict(
        {"provider": "minimax", "connection_type": "environment", "secret_ref": "MINIMAX_API_KEY"}
    )
    connection = call_operation(
        "connections", "providers_connections_create", client=ada, body=link
    )
    assert connection.id.startswith("prv_")
    fields = {"name": "llm.generate", "input": {"objective": "A line about tea"}}
    run = call_operation("runs", "runs_create", client=ada, body=models.RunCreate.from_dict(fields))
    run_end = poll_until_ended(lambda: call_operation("runs", "runs_read", client=ada, id=run.id))
    assert run_end.data.output.additional_properties["text"]
    assert run_end.data.connection_id == connection.id
    nodes = [
        {"id": "facts", "capability": "research.gather", "input": {"topic": "Tea"}},
        {"id": "copy", "capability": "llm.generate", "input": {"objective": "A line"},
         "depends_on": ["facts"]},
    ]  # fmt: skip
    flow = models.WorkflowCreate.from_dict({"name": "two", "nodes": nodes})
    accepted = call_operation("workflows", "workflows_create", client=ada, body=flow)
    workflow = poll_until_ended(
        lambda: call_operation("workflows", "workflows_read", client=ada, id=accepted.id)
    )
    assert [node.status.value for node in workflow.data.nodes] == ["completed", "completed"]
    content = call_operation(
        "artifacts", "artifacts_read", client=ada, id=workflow.data.final_artifact_id
    )
    assert content.data.size_bytes > 0
    page = call_operation("runs", "runs_list", client=ada, limit=5)
    assert [item.id for item in page.data.items] == [run.id]


def test_errors_have_one_class(package: Path, server: Server) -> None:
    """Given rejected requests, then the generated client parses the error envelope."""
    models, client = import_module("models"), import_module("client")
    with client.AuthenticatedClient(base_url=server.url, token="sk_live_none") as unknown_client:
        unauthenticated = call_operation("runs", "runs_list", client=unknown_client)
    assert isinstance(unauthenticated, models.ErrorEnvelope)
    assert unauthenticated.error.code == ErrorCode.UNAUTHENTICATED.name
    assert unauthenticated.error.request_id.startswith("req_")
    body = models.AccountCreate(email="no address")
    with client.Client(base_url=server.url) as open_client:
        invalid = call_operation("account", "account_create", client=open_client, body=body)
    assert (invalid.error.code, invalid.error.details[0].path) == ("INVALID_REQUEST", "email")
