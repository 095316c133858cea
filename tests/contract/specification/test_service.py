"""Rules of the whole service: keys, paths, lookups, the life of endpoints, pointers, secrets."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.contract.raw_http import NAMES, POINTER, UNKNOWN_ULID, Json, RawCaller
from tests.contract.specification.sections import section
from tests.contract.test_decisions import COLLECTIONS
from toolkit.sandbox import SANDBOX_KEYS

SERVICE = "What the service does"
LOOKUP = "Endpoints > Capabilities"
SERVERLESS = "Endpoints > Endpoints (serverless)"
CONNECTIONS = "/v1/providers/connections"

# Every path of "Endpoints".
PATHS = [
    ("POST", "/v1/providers/connections"),
    ("GET", "/v1/capabilities"),
    ("GET", "/v1/capabilities/image.generate"),
    ("GET", "/v1/capabilities/image.generate@1"),
    ("POST", "/v1/runs"),
    ("GET", f"/v1/runs/run_{UNKNOWN_ULID}"),
    ("POST", "/v1/endpoints"),
    ("GET", "/v1/endpoints"),
    ("GET", f"/v1/endpoints/ep_{UNKNOWN_ULID}"),
    ("DELETE", f"/v1/endpoints/ep_{UNKNOWN_ULID}"),
    ("POST", "/v1/tasks"),
    ("GET", f"/v1/tasks/tsk_{UNKNOWN_ULID}"),
    ("POST", "/v1/workflows"),
    ("GET", f"/v1/workflows/wfl_{UNKNOWN_ULID}"),
]


@section("Authentication")
@section("Endpoints > Account")
@section("Resources and their fields > Account")
def test_an_email_is_enough_for_a_key(service: RawCaller) -> None:
    """Given an email, then the response has a valid key; a second request gets none."""
    response = service.send("POST", "/v1/account", {"email": "key@example.org"})
    assert response.is_success
    key = response.json()["data"]["api_key"]
    assert key.startswith("sk_live_")
    assert replace(service, key=key).send("GET", "/v1/endpoints").status_code == 200
    repeated = service.send("POST", "/v1/account", {"email": "KEY@example.org"})
    assert repeated.status_code == 409
    assert "sk_live_" not in repeated.text


@section("Endpoints > Account")
@pytest.mark.parametrize(
    "body",
    [{}] + [{"email": email} for email in (1, None, "", "ada", "ada@", "@x.org", "a b@x.org")],
)
def test_an_account_needs_an_email(service: RawCaller, body: Json) -> None:
    """Given no valid email, then the field is named."""
    error = service.read_error("POST", "/v1/account", body)
    assert (error.status, error.paths) == (400, ["email"])


@section("Endpoints")
@section("Authentication")
@pytest.mark.parametrize(("method", "path"), PATHS)
def test_every_other_request_needs_the_key(
    service: RawCaller, caller: RawCaller, method: str, path: str
) -> None:
    """Given a path, then it responds 401 without the key, and as specified with it."""
    body = COLLECTIONS[path][0] if method == "POST" else None
    assert service.send(method, path, body).status_code == 401
    response = caller.send(method, path, body)
    expects_404 = UNKNOWN_ULID in path
    assert response.status_code == 404 if expects_404 else response.is_success, response.text


@section("Endpoints")
@pytest.mark.parametrize(
    ("content_type", "status"),
    [("application/json", 202), ("application/json; charset=utf-8", 202), ("text/plain", 415)],
)
def test_bodies_are_json(caller: RawCaller, content_type: str, status: int) -> None:
    """Given a content type, then the body is accepted only if it is JSON."""
    headers = {"Authorization": f"Bearer {caller.key}", "Content-Type": content_type}
    content = b'{"objective": "A short text about tea"}'
    response = caller.http.post("/v1/tasks", headers=headers, content=content)
    assert response.status_code == status


@section("Authentication")
@section("Resources and their fields > Provider connection")
@pytest.mark.parametrize("member", ["secret", "api_key", "key", "value", "token"])
def test_rejects_a_provider_key(caller: RawCaller, member: str) -> None:
    """Given a member that would carry the secret, then it is rejected and not echoed."""
    secret = "hush-" + "z9Y8" * 10
    response = caller.send("POST", CONNECTIONS, {**POINTER, member: secret})
    assert response.status_code == 400
    assert secret not in response.text


@section(SERVICE)
@section("Authentication")
def test_never_stores_a_provider_key(service: RawCaller) -> None:
    """Given work at every vendor, then no file of the service holds the secret of any vendor."""
    account = service.sign_up(*NAMES.values())
    for name in ("openai", "anthropic", "google", "minimax", "aws"):
        assert account.run("llm.generate", {"objective": "Tea"}, provider=name)
    files = (path for path in Path(service.data_dir).rglob("*") if path.is_file())
    content = b"".join(path.read_bytes() for path in files)
    assert b"MINIMAX_API_KEY" in content  # the pointer is stored
    for secret in SANDBOX_KEYS.values():
        assert secret.encode() not in content


@section("Endpoints > Provider connections")
@pytest.mark.parametrize("field", ["provider", "connection_type", "secret_ref"])
def test_a_connection_needs_each_field(caller: RawCaller, field: str) -> None:
    """Given a pointer without a field, then the field is named."""
    body = {name: value for name, value in POINTER.items() if name != field}
    error = caller.read_error("POST", CONNECTIONS, body)
    assert (error.status, error.paths) == (400, [field])


@section(LOOKUP)
@section("Versioning")
@pytest.mark.parametrize("suffix", ["", "@1"])
def test_looks_up_a_capability(caller: RawCaller, suffix: str) -> None:
    """Given an id, with or without a version, then the response is the capability as listed."""
    for item in caller.get("/v1/capabilities")["data"]["items"]:
        assert caller.get(f"/v1/capabilities/{item['id']}{suffix}")["data"] == item


@section(LOOKUP)
@section("Errors")
@section("Versioning")
@pytest.mark.parametrize(
    "name", ["no.such", "image.generate@2", "image.generate@", "image.generate@1.0", "image@1"]
)
def test_an_unknown_id_or_version_is_not_found(caller: RawCaller, name: str) -> None:
    """Given an unknown id or version, then `NOT_FOUND`."""
    assert caller.read_error("GET", f"/v1/capabilities/{name}") == (404, "NOT_FOUND", [])


@section(SERVERLESS)
@section(SERVICE)
def test_an_endpoint_is_created_and_destroyed(caller: RawCaller) -> None:
    """Given an endpoint, then it is created with 201, listed and read until it is deleted."""
    response = caller.send("POST", "/v1/endpoints", {"name": "studio"})
    assert response.status_code == 201
    endpoint_id = response.json()["id"]

    def is_listed() -> bool:
        items = caller.get("/v1/endpoints")["data"]["items"]
        return endpoint_id in {endpoint["id"] for endpoint in items}

    assert endpoint_id.startswith("ep_")
    assert is_listed()
    assert caller.get(f"/v1/endpoints/{endpoint_id}")["data"]["name"] == "studio"
    assert caller.send("DELETE", f"/v1/endpoints/{endpoint_id}").status_code == 200
    assert caller.send("GET", f"/v1/endpoints/{endpoint_id}").status_code == 404
    assert not is_listed()


@section(SERVERLESS)
def test_a_shared_template_outlives_its_endpoint(caller: RawCaller) -> None:
    """Given a shared template, then it cannot be deleted before its endpoint, and outlives it."""
    body = {"name": "lasting", "image": "example/worker:1"}
    template_id = caller.create("/v1/templates", body)["id"]
    path = f"/v1/templates/{template_id}"
    endpoint_id = caller.create("/v1/endpoints", {"template_id": template_id})["id"]
    response = caller.send("DELETE", path)
    assert (response.status_code, endpoint_id in response.text) == (409, True)
    caller.send("DELETE", f"/v1/endpoints/{endpoint_id}")
    assert caller.get(path)["status"] == "ready"
    second = caller.create("/v1/endpoints", {"template_id": template_id})
    assert second["status"] == "ready"
    caller.send("DELETE", f"/v1/endpoints/{second['id']}")
    assert caller.send("DELETE", path).json()["status"] == "deleted"


@section(SERVERLESS)
def test_a_hidden_template_is_deleted_with_its_endpoint(service: RawCaller) -> None:
    """Given endpoints without a template, then their hidden templates are deleted with them."""
    account = service.sign_up("runpod")
    service.faults.forget_calls()
    bodies: list[Json] = [{}, {"image": "example/worker:1"}]
    endpoints = [account.create("/v1/endpoints", body) for body in bodies]
    for endpoint in endpoints:
        assert account.send("DELETE", f"/v1/endpoints/{endpoint['id']}").status_code == 200
        if template_id := endpoint["data"]["template_id"]:
            assert account.send("GET", f"/v1/templates/{template_id}").status_code == 404
    assert account.get("/v1/templates")["data"]["items"] == []
    # Each template that the vendor created, the vendor was asked to delete.
    calls = [(call.method, call.status) for call in service.faults.calls if "templ" in call.path]
    assert calls.count(("POST", 201)) == calls.count(("DELETE", 204))


@section(SERVICE)
@section("Versioning")
@pytest.mark.parametrize(
    "path", ["/capabilities", "/runs", "/v2/capabilities", "/v1", "/v1/v1/runs"]
)
def test_the_contract_is_under_v1_alone(caller: RawCaller, path: str) -> None:
    """Given a path outside the prefix, then `NOT_FOUND`."""
    assert caller.read_error("GET", path) == (404, "NOT_FOUND", [])
