"""The client against prepared responses: requests, errors, retries."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from toolkit.client import Client, Workflow
from toolkit.contract.errors import RequestError, ServiceError
from toolkit.contract.workflows import WorkflowCreate

pytestmark = pytest.mark.usefixtures("no_backoff")
AT = "2026-11-20T08:00:00.000Z"
RUN: dict[str, Any] = {
    "id": "run_1", "job_id": "job_1", "capability": "llm.generate@1", "input": {},
    "status": "running", "created_at": AT,
}  # fmt: skip
URL, KEY = "http://service.test", "sk_live_canary"


class ListedService:
    """Returns the prepared responses in order, and records the requests."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.seen: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Return the next response."""
        self.seen.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def client(self, **options: Any) -> Client:
        """Open a client of the service."""
        return Client(URL, KEY, transport=httpx.MockTransport(self), **options)


def envelope(data: dict[str, Any], status: int = 200) -> httpx.Response:
    """Build a response with a resource."""
    return httpx.Response(status, json={"id": data["id"], "data": data})


def events(*types: str, first: int = 1) -> httpx.Response:
    """Build a response with events of `run_1`."""
    items = [
        {"n": first + i, "resource_id": "run_1", "type": kind, "at": AT, "data": {"id": "run_1"}}
        for i, kind in enumerate(types)
    ]
    return httpx.Response(200, json={"data": {"items": items, "count": len(items)}})


def failure(status: int, code: str, **headers: str) -> httpx.Response:
    """Build an error response."""
    body = {"error": {"code": code, "message": "No.", "request_id": "req_1"}}
    return httpx.Response(status, json=body, headers=headers)


def test_sends_the_key_without_showing_it() -> None:
    """Given a key, then the header has it and no repr has it."""
    service = ListedService(envelope(RUN))
    client = service.client()
    client.runs.get("run_1")
    assert service.seen[0].headers["Authorization"] == f"Bearer {KEY}"
    assert str(service.seen[0].url) == "http://service.test/v1/runs/run_1"
    assert KEY not in repr(client) + repr(vars(client))


def test_sends_only_the_given_options() -> None:
    """Given an option, then the request has it and no other option."""
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
def test_raises_errors_of_one_line(
    monkeypatch: pytest.MonkeyPatch,
    answer: httpx.Response | Exception,
    kind: type[Exception],
    code: str,
) -> None:
    """Given an error or no response, then the exception has its code, in one line."""
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


@pytest.mark.parametrize(
    "send",
    [
        lambda client: client.runs.get("run_1"),
        lambda client: client.runs.create("llm.generate", {}),
    ],
)
def test_retries_with_the_same_idempotency_key(send: Callable[[Client], Any]) -> None:
    """Given a service that fails at first, then a GET or POST is retried with the same key."""
    lost = httpx.RemoteProtocolError("Server disconnected")
    service = ListedService(
        failure(503, "UNAVAILABLE"), httpx.ReadError("lost"), lost, envelope(RUN)
    )
    assert send(service.client()).id == "run_1"
    keys = {request.headers.get("idempotency-key") for request in service.seen}
    assert (len(service.seen), len(keys)) == (4, 1)


@pytest.mark.parametrize(
    ("answer", "send"),
    [
        (failure(400, "INVALID_REQUEST"), lambda client: client.runs.create("llm.generate", {})),
        (failure(500, "INTERNAL"), lambda client: client.runs.create("llm.generate", {})),
        # The response has a key that is shown a single time.
        (httpx.ReadError("lost"), lambda client: client.api_keys.create()),
        (failure(503, "UNAVAILABLE"), lambda client: client.account.create("ada@example.org")),
        (failure(429, "RATE_LIMITED"), lambda client: client.account.create("ada@example.org")),
    ],
)
def test_does_not_retry_unsafe_requests(
    answer: httpx.Response | Exception, send: Callable[[Client], object]
) -> None:
    """Given a failure that a retry cannot change or could repeat, then no retry is made."""
    service = ListedService(answer)
    with pytest.raises((RequestError, ServiceError)):
        send(service.client(max_retries=5))
    assert len(service.seen) == 1


def test_builds_a_workflow() -> None:
    """Given nodes, then mistakes raise at once and the body is the contract's."""
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
