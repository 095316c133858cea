"""The client against answers made by hand: requests, errors, retries, waiting."""

import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

from toolkit.client import Client, Workflow, _async, _sync
from toolkit.contract.errors import RequestError, ServiceError
from toolkit.contract.workflows import WorkflowCreate

pytestmark = pytest.mark.usefixtures("no_backoff")
ROOT = Path(__file__).parent.parent.parent
AT = "2026-11-20T08:00:00.000Z"
RUN: dict[str, Any] = {
    "id": "run_1", "job_id": "job_1", "capability": "llm.generate@1", "input": {},
    "status": "running", "created_at": AT,
}  # fmt: skip
KEY = "sk_live_canary"


class ListedService:
    """Answers from a list, one a request; remembers what was asked."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.seen: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer the next one."""
        self.seen.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def client(self) -> Client:
        """A client of it."""
        return Client("http://service.test", KEY, transport=httpx.MockTransport(self))


def envelope(data: dict[str, Any], status: int = 200) -> httpx.Response:
    """One resource."""
    return httpx.Response(status, json={"id": data["id"], "data": data})


def events(*types: str, first: int = 1) -> httpx.Response:
    """Events of `run_1`."""
    items = [
        {"n": first + i, "resource_id": "run_1", "type": kind, "at": AT, "data": {"id": "run_1"}}
        for i, kind in enumerate(types)
    ]
    return httpx.Response(200, json={"data": {"items": items, "count": len(items)}})


def failure(status: int, code: str, **headers: str) -> httpx.Response:
    """An error answer."""
    body = {"error": {"code": code, "message": "No.", "request_id": "req_1"}}
    return httpx.Response(status, json=body, headers=headers)


def test_the_key_is_sent_and_never_shown() -> None:
    """Given a key, then it is in the header and in no repr."""
    service = ListedService(envelope(RUN))
    client = service.client()
    client.runs.get("run_1")
    assert service.seen[0].headers["Authorization"] == f"Bearer {KEY}"
    assert str(service.seen[0].url) == "http://service.test/v1/runs/run_1"
    assert KEY not in repr(client) + repr(vars(client))


def test_a_run_is_asked_for_as_the_contract_has_it() -> None:
    """Given options, then only those that were given are in the body."""
    service = ListedService(envelope(RUN, 202))
    run = service.client().runs.create("llm.generate", {"objective": "x"}, provider="openai")
    assert json.loads(service.seen[0].content) == {
        "target": "capability",
        "name": "llm.generate",
        "input": {"objective": "x"},
        "options": {"provider": "openai"},
    }
    assert run.id == "run_1"
    assert repr(run) == "<Run run_1 llm.generate@1 running>"


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        (failure(400, "INVALID_REQUEST"), RequestError, "INVALID_REQUEST"),
        (failure(402, "BUDGET_EXCEEDED"), RequestError, "BUDGET_EXCEEDED"),
        (failure(429, "RATE_LIMITED", **{"Retry-After": "7"}), ServiceError, "RATE_LIMITED"),
        (failure(400, "CODE_OF_A_LATER_VERSION"), ServiceError, "INTERNAL"),
        (httpx.Response(502, html="<h1>Bad gateway</h1>"), ServiceError, "UNAVAILABLE"),
        (httpx.ConnectError("refused"), ServiceError, "UNAVAILABLE"),
    ],
)
def test_errors_are_exceptions_of_one_line(
    monkeypatch: pytest.MonkeyPatch,
    answer: httpx.Response | Exception,
    kind: type[Exception],
    code: str,
) -> None:
    """Given an answer that is none, then the exception has the code and says what to do."""
    monkeypatch.setenv("TOOLKIT_MAX_WAIT_S", "0")
    with pytest.raises(kind) as failed:
        ListedService(*[answer] * 4).client().runs.create("llm.generate", {})
    error = failed.value
    assert isinstance(error, RequestError | ServiceError)
    assert error.code.name == code
    assert "\n" not in str(error)
    assert len(error._render_traceback_()) == 1
    if code == "RATE_LIMITED":
        assert (error.retry_after, error.request_id) == (7.0, "req_1")


def test_what_failed_is_sent_again_where_that_is_safe() -> None:
    """Given a service that fails at first, then a POST is sent again too, with the same key."""
    service = ListedService(failure(503, "UNAVAILABLE"), httpx.ReadError("lost"), envelope(RUN))
    assert service.client().runs.get("run_1").id == "run_1"
    service = ListedService(
        failure(503, "UNAVAILABLE"), httpx.ReadError("lost"), envelope(RUN, 202)
    )
    assert service.client().runs.create("llm.generate", {}).id == "run_1"
    keys = {request.headers["idempotency-key"] for request in service.seen}
    assert (len(service.seen), len(keys)) == (3, 1)
    service = ListedService(failure(500, "INTERNAL"), envelope(RUN, 202))
    with pytest.raises(ServiceError):
        service.client().runs.create("llm.generate", {})
    service = ListedService(failure(503, "UNAVAILABLE"), envelope(RUN, 201))
    with pytest.raises(ServiceError):  # what it answers, a key, is told a single time
        service.client().account.create("ada@example.org")


def public(package: ModuleType, prefix: str) -> dict[str, set[str]]:
    """The public classes of a package with their public methods' signatures."""
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    modules = [importlib.import_module(module.name) for module in found]
    return {
        f"{module.__name__.removeprefix(package.__name__)}.{name.removeprefix(prefix)}": {
            f"{method}({', '.join(inspect.signature(function).parameters)})"
            for method, function in inspect.getmembers(kind, inspect.isfunction)
            if not method.startswith("_")
        }
        for module in modules
        for name, kind in inspect.getmembers(module, inspect.isclass)
        if kind.__module__ == module.__name__
    }


def test_both_clients_offer_the_same() -> None:
    """Given the async and the sync modules, then classes, methods and parameters are the same."""
    asynchronous = public(_async, "Async")
    assert len(asynchronous) >= 40
    renamed = {
        kind: {method.replace("aclose", "close") for method in methods}
        for kind, methods in asynchronous.items()
    }
    assert renamed == public(_sync, "")


def test_the_sync_client_is_current() -> None:
    """Given the generator, when it checks, then nothing is stale."""
    command = [sys.executable, str(ROOT / "scripts" / "unasync.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_workflow_is_built_in_order() -> None:
    """Given nodes, then faults are told at once and the body is the contract's."""
    wf = Workflow("w", max_retries=1, max_cost_usd=0.5)
    a = wf.add("a", "research.gather", topic="Tea")
    wf.add("b", "llm.generate", objective="x", depends_on=[a, "a"][:1], options={"provider": "p"})
    with pytest.raises(RequestError, match="another node"):
        wf.add("a", "llm.generate")
    with pytest.raises(RequestError, match="add it first"):
        wf.add("c", "llm.generate", depends_on=["ghost"])
    body = wf.to_dict()
    assert body["options"] == {"max_cost_usd": 0.5}
    assert Workflow.from_dict(body).to_dict() == body
    assert WorkflowCreate.model_validate(body).nodes[1].options.provider == "p"
    assert list(wf.to_networkx().edges) == [("a", "b")]
    assert "n0 --> n1" in wf.to_mermaid()
    assert set(wf._repr_mimebundle_()) == {"text/plain", "image/svg+xml", "image/png"}
