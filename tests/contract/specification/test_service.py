"""Rules that hold everywhere: keys, paths, lookups, the life of endpoints, pointers, no secrets."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.contract.raw_http import POINTER, VENDORS, Json, RawCaller
from tests.contract.specification.sections import section
from toolkit.capabilities import load_capabilities

SERVICE = "What the service does"
LOOKUP = "Endpoints > Capabilities"
SERVERLESS = "Endpoints > Endpoints (serverless)"
NOBODYS = "01m7xrhddbvq3n2zjx4fe01326"

# Every path of "Endpoints", with a body that it takes.
RUN = {"target": "capability", "name": "research.gather", "version": "1", "input": {"topic": "x"}}
NODE = {"id": "a", "capability": "research.gather", "input": {"topic": "Tea"}}
PATHS: list[tuple[str, str, Json | None]] = [
    ("POST", "/v1/providers/connections", POINTER),
    ("GET", "/v1/capabilities", None),
    ("GET", "/v1/capabilities/image.generate", None),
    ("GET", "/v1/capabilities/image.generate@1", None),
    ("POST", "/v1/runs", RUN),
    ("GET", f"/v1/runs/run_{NOBODYS}", None),
    ("POST", "/v1/endpoints", {}),
    ("GET", "/v1/endpoints", None),
    ("GET", f"/v1/endpoints/ep_{NOBODYS}", None),
    ("DELETE", f"/v1/endpoints/ep_{NOBODYS}", None),
    ("POST", "/v1/tasks", {"objective": "A short text about tea"}),
    ("GET", f"/v1/tasks/tsk_{NOBODYS}", None),
    ("POST", "/v1/workflows", {"name": "w", "nodes": [NODE]}),
    ("GET", f"/v1/workflows/wfl_{NOBODYS}", None),
]


# --- Authentication ---


@section("Authentication")
@section("Endpoints > Account")
def test_a_key_is_obtained_without_credentials(service: RawCaller) -> None:
    """Given an email alone, then the answer is an envelope with `data.api_key`, a text."""
    answer = service.send("POST", "/v1/account", {"email": "key@example.org"})
    assert answer.is_success
    assert answer.json()["data"]["api_key"].startswith("sk_live_")
    key = answer.json()["data"]["api_key"]
    assert replace(service, key=key).send("GET", "/v1/endpoints").status_code == 200
    again = service.send("POST", "/v1/account", {"email": "KEY@example.org"})
    assert again.status_code == 409
    assert "sk_live_" not in again.text


@section("Endpoints > Account")
@pytest.mark.parametrize(
    "body",
    [{}] + [{"email": email} for email in (1, None, "", "ada", "ada@", "@x.org", "a b@x.org")],
)
def test_an_email_is_needed(service: RawCaller, body: Json) -> None:
    """Given no email, then no account is made, and the field is named."""
    answer = service.send("POST", "/v1/account", body)
    assert answer.status_code == 400
    assert [one["path"] for one in answer.json()["error"]["details"]] == ["email"]


@section("Endpoints")
@section("Authentication")
@pytest.mark.parametrize(("method", "path", "body"), PATHS)
def test_every_other_request_needs_the_key(
    service: RawCaller, caller: RawCaller, method: str, path: str, body: Json | None
) -> None:
    """Given a path, then it is refused without the key, and with it is answered as it should."""
    assert service.send(method, path, body).status_code == 401
    answer = caller.send(method, path, body)
    assert answer.status_code == 404 if NOBODYS in path else answer.is_success, answer.text


@section("Endpoints")
@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8"])
def test_bodies_are_json(caller: RawCaller, content_type: str) -> None:
    """Given the content type of JSON, then a body is taken; given another, it is not."""
    key = {"Authorization": f"Bearer {caller.key}"}
    content = b'{"objective": "A short text about tea"}'
    for given, status in ((content_type, 202), ("text/plain", 415)):
        headers = {**key, "Content-Type": given}
        answer = caller.http.post("/v1/tasks", headers=headers, content=content)
        assert answer.status_code == status


@section("Authentication")
@section("Resources and their fields > Provider connection")
@pytest.mark.parametrize("member", ["secret", "api_key", "key", "value", "token"])
def test_a_provider_key_cannot_be_sent(caller: RawCaller, member: str) -> None:
    """Given a member that would carry the secret, then it is refused and not echoed."""
    secret = "hush-" + "z9Y8" * 10
    answer = caller.send("POST", "/v1/providers/connections", {**POINTER, member: secret})
    assert answer.status_code == 400
    assert secret not in answer.text


@section(SERVICE)
@section("Authentication")
def test_the_secret_is_never_stored(service: RawCaller) -> None:
    """Given work at every vendor, then no file of the service holds the secret of one."""
    from toolkit.sandbox import SANDBOX_KEYS

    everyone = service.sign_up(*(name for name, _ in VENDORS.values()))
    for name in ("openai", "anthropic", "google", "minimax", "aws"):
        assert everyone.run("llm.generate", {"objective": "Tea"}, provider=name)
    stored = b"".join(p.read_bytes() for p in Path(service.data_dir).rglob("*") if p.is_file())
    assert b"MINIMAX_API_KEY" in stored  # the pointer is
    for secret in SANDBOX_KEYS.values():
        assert secret.encode() not in stored


@section("Resources and their fields > Account")
@section("Authentication")
def test_a_key_is_not_retrievable_later(service: RawCaller) -> None:
    """Given a key, then no file of the service and no other answer holds it."""
    mine = service.sign_up()
    for path in ("/v1/account", "/v1/account/keys", "/v1/usage"):
        assert str(mine.key) not in mine.send("GET", path).text
    stored = b"".join(p.read_bytes() for p in Path(service.data_dir).rglob("*") if p.is_file())
    assert str(mine.key).encode() not in stored


# --- Provider connections ---


@section("Endpoints > Provider connections")
@pytest.mark.parametrize("missing", ["provider", "connection_type", "secret_ref"])
def test_a_connection_needs_each_field(caller: RawCaller, missing: str) -> None:
    """Given a field less, then it is the one that is named."""
    body = {name: value for name, value in POINTER.items() if name != missing}
    answer = caller.send("POST", "/v1/providers/connections", body)
    assert answer.status_code == 400
    assert [one["path"] for one in answer.json()["error"]["details"]] == [missing]


@section("Endpoints > Provider connections")
def test_connections_are_listed(service: RawCaller) -> None:
    """Given registered connections, then the client's list has them, as pointers."""
    alone = service.sign_up()
    made = {alone.connect("openai"), alone.connect("runpod")}
    listed = alone.get("/v1/providers/connections")["data"]
    assert {one["id"] for one in listed["items"]} == made
    assert all(one["id"].startswith("prv_") for one in listed["items"])


# --- Capabilities ---


@section(LOOKUP)
def test_count_equals_the_length_of_items(caller: RawCaller) -> None:
    """Given the list, then `count` is a whole number: how many items there are."""
    data = caller.get("/v1/capabilities")["data"]
    assert type(data["count"]) is int
    assert data["count"] == len(data["items"]) == len(load_capabilities())


@section(LOOKUP)
@section("Versioning")
@pytest.mark.parametrize("suffix", ["", "@1"])
def test_one_capability_is_looked_up(caller: RawCaller, suffix: str) -> None:
    """Given an id, with or without a version, then the answer is that capability as listed."""
    for item in caller.get("/v1/capabilities")["data"]["items"]:
        assert caller.get(f"/v1/capabilities/{item['id']}{suffix}")["data"] == item


@section(LOOKUP)
@section("Errors")
@section("Versioning")
@pytest.mark.parametrize(
    "name", ["no.such", "image.generate@2", "image.generate@", "image.generate@1.0", "image@1"]
)
def test_an_unknown_id_or_version_is_not_found(caller: RawCaller, name: str) -> None:
    """Given an id or a version that there is not, then `NOT_FOUND`."""
    answer = caller.send("GET", f"/v1/capabilities/{name}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "NOT_FOUND")


# --- Endpoints (serverless) ---


@section(SERVERLESS)
@section(SERVICE)
def test_an_endpoint_lives_and_is_destroyed(caller: RawCaller) -> None:
    """Given an endpoint, then it is made with 201, listed, read, and gone once it is deleted."""
    answer = caller.send("POST", "/v1/endpoints", {"name": "studio"})
    assert answer.status_code == 201
    made = answer.json()["id"]
    assert made.startswith("ep_")
    assert made in {one["id"] for one in caller.get("/v1/endpoints")["data"]["items"]}
    assert caller.get(f"/v1/endpoints/{made}")["data"]["name"] == "studio"
    assert caller.send("DELETE", f"/v1/endpoints/{made}").status_code == 200
    assert caller.send("GET", f"/v1/endpoints/{made}").status_code == 404
    assert made not in {one["id"] for one in caller.get("/v1/endpoints")["data"]["items"]}


@section(SERVERLESS)
def test_a_shared_template_outlives_its_endpoint(caller: RawCaller) -> None:
    """Given a shared template, then the endpoint that used it takes none of it along."""
    template = caller.create("/v1/templates", {"name": "lasting", "image": "example/worker:1"})[
        "id"
    ]
    endpoint = caller.create("/v1/endpoints", {"template_id": template})["id"]
    caller.send("DELETE", f"/v1/endpoints/{endpoint}")
    assert caller.get(f"/v1/templates/{template}")["status"] == "ready"
    again = caller.create("/v1/endpoints", {"template_id": template})
    assert again["status"] == "ready"


@section(SERVERLESS)
def test_a_hidden_template_goes_with_its_endpoint(service: RawCaller) -> None:
    """Given endpoints without a template, then what was made for them is gone with them."""
    alone = service.sign_up("runpod")
    service.faults.forget_calls()
    made = [alone.create("/v1/endpoints", body) for body in ({}, {"image": "example/worker:1"})]
    hidden = [one["data"]["template_id"] for one in made if one["data"]["template_id"]]
    for one in made:
        assert alone.send("DELETE", f"/v1/endpoints/{one['id']}").status_code == 200
    for template in hidden:
        assert alone.send("GET", f"/v1/templates/{template}").status_code == 404
    assert alone.get("/v1/templates")["data"]["items"] == []
    # What the vendor itself was asked to make of them, it was asked to delete.
    calls = [(call.method, call.status) for call in service.faults.calls if "templ" in call.path]
    assert calls.count(("POST", 201)) == calls.count(("DELETE", 204))


# --- Other areas ---


@section(SERVICE)
@section("Endpoints > Other areas")
@pytest.mark.parametrize(
    "path",
    [
        "/v1/account",
        "/v1/account/keys",
        "/v1/providers",
        "/v1/providers/connections",
        "/v1/capabilities",
        "/v1/runs",
        "/v1/jobs",
        "/v1/compute",
        "/v1/storage",
        "/v1/templates",
        "/v1/endpoints",
        "/v1/catalog/gpus",
        "/v1/artifacts",
        "/v1/workflows",
        "/v1/plans",
        "/v1/tasks",
        "/v1/agents",
        "/v1/usage",
        "/v1/billing",
    ],
)
def test_every_area_of_the_platform_is_there(caller: RawCaller, path: str) -> None:
    """Given an area that is stated to exist, then it can be read."""
    assert "data" in caller.get(path)


@section(SERVICE)
def test_each_vendor_bills_for_itself(service: RawCaller) -> None:
    """Given work at two vendors, then each has its line, and the platform bills nothing for it."""
    alone = service.sign_up("openai", "elevenlabs")
    alone.run("llm.generate", {"objective": "Tea"})
    alone.run("speech.generate", {"text": "Tea."})
    lines = {line["billed_by"]: line for line in alone.get("/v1/billing")["data"]["lines"]}
    assert {"openai", "elevenlabs"} <= set(lines)
    assert lines["platform"]["cost_usd"] == 0


@section(SERVICE)
@section("Resources and their fields")
def test_a_job_runs_on_a_compute_of_the_callers(caller: RawCaller) -> None:
    """Given a compute of a GPU of the catalog, then a job of type `image` is done on it."""
    gpu = caller.get("/v1/catalog/gpus")["data"]["items"][0]["id"]
    compute = caller.create("/v1/compute", {"name": "easel", "gpu_type": gpu})["id"]
    given = {"prompt": "a lighthouse", "steps": 2, "width": 256, "height": 256}
    body = {"type": "image", "compute_id": compute, "input": given}
    job = caller.create("/v1/jobs", body)["id"]
    done = caller.poll(f"/v1/jobs/{job}", "completed", "failed")
    assert (done["status"], done["data"]["compute_id"]) == ("completed", compute)


@section(SERVICE)
@section("Versioning")
@pytest.mark.parametrize(
    "path", ["/capabilities", "/runs", "/v2/capabilities", "/v1", "/v1/v1/runs"]
)
def test_the_contract_is_under_v1_alone(caller: RawCaller, path: str) -> None:
    """Given a path that is not below the prefix, then there is nothing of the contract there."""
    answer = caller.send("GET", path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "NOT_FOUND")


@section("Versioning")
@section("Resources and their fields > Capability object")
@pytest.mark.parametrize("field", ["input", "output", "targets"])
def test_older_field_docs_remain(caller: RawCaller, field: str) -> None:
    """Given every capability, then the older docs are there beside the schemas."""
    for item in caller.get("/v1/capabilities")["data"]["items"]:
        assert item[field] is not None
