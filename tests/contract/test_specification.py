"""Tables of the specification, row by row: resources, their fields, defaults and limits.

Expectations are literals from the specification, and requests are raw HTTP. The modules of the
folder `specification` test its sentences, and `test_complete.py` reports sections without tests.
"""

import re
import wave
from collections.abc import Iterable
from io import BytesIO
from typing import Any

import jsonschema
import pytest

from tests.contract.raw_http import (
    NAMES,
    POINTER,
    SMALL_IMAGE,
    VENDORS,
    Json,
    RawCaller,
    build_run_body,
)
from tests.contract.specification.sections import section
from toolkit.vendors import load_vendors

pytestmark = [pytest.mark.sqlite("other tests have its statements")]

RESOURCES = "Resources and their fields"
CONNECTIONS = "/v1/providers/connections"
LLM = ["V1", "V2", "V3", "V4", "V6", "V7"]
VOICE = ["V4", "V5"]


@section(f"{RESOURCES} > Provider connection")
@pytest.mark.parametrize(
    ("connection_type", "secret_ref"),
    [
        ("environment", "OPENAI_API_KEY"),
        ("aws_secrets_manager", "prod/openai"),
        (
            "aws_secrets_manager",
            "arn:aws:secretsmanager:eu-central-1:123456789012:secret:prod/openai-AbCdEf",
        ),
    ],
)
@pytest.mark.parametrize("provider", NAMES.values())
def test_stores_a_connection_as_a_pointer(
    stranger: RawCaller, provider: str, connection_type: str, secret_ref: str
) -> None:
    """Given a provider and a type, then the record is the pointer as it was sent."""
    pointer = {"provider": provider, "connection_type": connection_type, "secret_ref": secret_ref}
    connection = stranger.create(CONNECTIONS, pointer)
    assert pointer.items() <= connection["data"].items()
    record = stranger.get(f"{CONNECTIONS}/{connection['id']}")
    assert pointer.items() <= record["data"].items()
    assert stranger.send("DELETE", f"{CONNECTIONS}/{connection['id']}").status_code == 200


@section(f"{RESOURCES} > Provider connection")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("connection_type", "file"),
        ("connection_type", "Environment"),
        ("provider", "V4"),
        ("provider", "OpenAI"),
        ("secret_ref", ""),
        ("secret_ref", "sk-" + "a1B2" * 10),
    ],
)
def test_rejects_an_unknown_kind_of_connection(stranger: RawCaller, field: str, value: str) -> None:
    """Given a type, provider or secret that the table lacks, then nothing is stored."""
    error = stranger.read_error("POST", CONNECTIONS, {**POINTER, field: value})
    assert (error.status, error.paths) == (400, [field])
    assert stranger.get(CONNECTIONS)["data"]["items"] == []


def is_schema(value: Any) -> bool:
    """Return whether a value is the JSON schema of an object."""
    jsonschema.Draft202012Validator.check_schema(value)
    return isinstance(value, dict) and value.get("type") == "object" and "properties" in value


def is_backend(value: Any) -> bool:
    """Return whether a value has the connection that a backend requires, and its status."""
    known_providers = (None, *NAMES.values(), *load_vendors())
    has_status = value["status"] in ("available", "planned")
    return value["requires_connection"] in known_providers and has_status


FIELDS = {
    "id": lambda c: re.fullmatch(r"[a-z]+\.[a-z]+", c["id"]),
    "name": lambda c: c["name"] == c["id"],
    "title": lambda c: isinstance(c["title"], str) and c["title"],
    "version": lambda c: c["version"] == "1",
    "description": lambda c: isinstance(c["description"], str) and c["description"],
    "status": lambda c: c["status"] in ("available", "planned"),
    "async": lambda c: isinstance(c["async"], bool),
    "estimated_cost": lambda c: isinstance(c["estimated_cost"], bool),
    "input_schema": lambda c: is_schema(c["input_schema"]),
    "output_schema": lambda c: is_schema(c["output_schema"]),
    "invoke": lambda c: c["invoke"] == "POST /v1/runs",
    "job": lambda c: c["job"]["invoke"] == "POST /v1/jobs" and isinstance(c["job"]["type"], str),
    "source.providers[]": lambda c: (
        c["source"]["providers"] and all(map(is_backend, c["source"]["providers"]))
    ),
    "source.routing": lambda c: (
        {"allowed_connections", "policy", "default_provider"} <= set(c["source"]["routing"])
    ),
    "input": lambda c: set(c["input"]) == set(c["input_schema"]["properties"]),
    "output": lambda c: set(c["output"]) == set(c["output_schema"]["properties"]),
    "targets": lambda c: isinstance(c["targets"], list) and c["targets"],
}


@section(f"{RESOURCES} > Capability object")
@section("Versioning")
@pytest.mark.parametrize("field", FIELDS)
def test_every_capability_has_the_field(caller: RawCaller, field: str) -> None:
    """Given each capability, then the field is what the table states."""
    items = caller.get("/v1/capabilities")["data"]["items"]
    assert [c["id"] for c in items if not FIELDS[field](c)] == []


# id: vendors that may serve it, the default vendor, whether it needs a connection
REGISTERED: dict[str, tuple[list[str], str | None, bool]] = {
    "image.generate": (["V7"], "V7", True),
    "research.gather": (LLM, None, False),
    "composition.layout": ([], None, False),
    "llm.generate": (LLM, "V4", True),
    "text.generate": (LLM, "V4", True),
    "speech.generate": (VOICE, "V4", True),
    "voice.clone": (VOICE, "V4", True),
}


def sort_built_in(providers: Iterable[str | None]) -> list[str | None]:
    """Sort the providers of the specification, and None; leave out those of plugins."""
    return sorted((name for name in providers if name in (None, *NAMES.values())), key=str)


@section(f"{RESOURCES} > Registered capabilities")
@pytest.mark.parametrize("name", REGISTERED)
def test_a_registered_capability_matches_its_row(caller: RawCaller, name: str) -> None:
    """Given a row of the table, then version, status and routing are as the row states."""
    labels, default, needs_connection = REGISTERED[name]
    providers = [NAMES[label] for label in labels]
    record = caller.get(f"/v1/capabilities/{name}")["data"]
    assert (record["id"], record["version"], record["status"]) == (name, "1", "available")
    routing = record["source"]["routing"]
    assert sort_built_in(routing["allowed_connections"]) == sorted(providers)
    assert routing["default_provider"] == (default and NAMES[default])
    backends = [backend["requires_connection"] for backend in record["source"]["providers"]]
    assert sort_built_in(backends) == (sorted(providers) if needs_connection else [None])


@section(f"{RESOURCES} > Registered capabilities")
def test_lists_the_registered_capabilities_first(caller: RawCaller) -> None:
    """Given the list, then it begins with the rows of the table, in their order."""
    items = caller.get("/v1/capabilities")["data"]["items"]
    assert [(c["id"], c["version"]) for c in items[:7]] == [(name, "1") for name in REGISTERED]


def build_input(caller: RawCaller, name: str) -> Json:
    """Return a valid input of a capability; its picture is small, so that it is drawn soon."""
    if name == "voice.clone":
        sound = BytesIO()
        with wave.open(sound, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(8000)
            file.writeframes(b"\x00\x10" * 8000 * 12)
        reference = caller.upload("voice.wav", sound.getvalue())
        return {"reference_audio": reference, "name": "narrator"}
    return {
        "image.generate": SMALL_IMAGE,
        "research.gather": {"topic": "Tidal power"},
        "composition.layout": {"title": "Tidal power"},
        "speech.generate": {"text": "Good morning."},
    }.get(name, {"objective": "One line on tea"})


@section(f"{RESOURCES} > Registered capabilities")
@pytest.mark.parametrize("name", REGISTERED)
def test_a_registered_capability_does_its_work(caller: RawCaller, name: str) -> None:
    """Given every connection, then a run completes, at the default provider if it needs one."""
    run = caller.run(name, build_input(caller, name))
    assert run["status"] == "completed", run
    assert run["data"]["output"]
    default = REGISTERED[name][1]
    if default is not None:
        assert run["data"]["provider"] == NAMES[default]


@section(f"{RESOURCES} > Registered capabilities")
@pytest.mark.parametrize("name", ["research.gather", "composition.layout"])
def test_work_on_the_cpu_needs_no_connection(stranger: RawCaller, name: str) -> None:
    """Given no connection, then the run completes without a vendor, and without a synthesis."""
    run = stranger.run(name, build_input(stranger, name))
    assert (run["status"], run["data"]["provider"]) == ("completed", None)
    assert run["data"]["output"].get("synthesis") is None


@section(f"{RESOURCES} > Registered capabilities")
@pytest.mark.parametrize("label", LLM)
def test_a_connected_llm_synthesizes_research(service: RawCaller, label: str) -> None:
    """Given an LLM connection, then the research has a synthesis by that provider."""
    account = service.sign_up(NAMES[label])
    run = account.run("research.gather", {"topic": "Tidal power"})
    assert run["status"] == "completed"
    assert run["data"]["output"]["synthesis"]
    assert run["data"]["provider"] == NAMES[label]


@section(f"{RESOURCES} > Registered capabilities")
def test_text_generate_is_an_alias_of_llm_generate(caller: RawCaller) -> None:
    """Given both capabilities, then their fields, schemas and routing are equal."""
    text, llm = (caller.get(f"/v1/capabilities/{n}.generate")["data"] for n in ("text", "llm"))
    for field in ("source", "async", "estimated_cost", "invoke", "targets"):
        assert text[field] == llm[field]
    for field in ("input_schema", "output_schema"):
        assert set(text[field]["properties"]) == set(llm[field]["properties"])
        assert text[field].get("required") == llm[field].get("required")


@section(f"{RESOURCES} > Registered capabilities")
@pytest.mark.parametrize("label", VOICE)
def test_speech_is_mp3(caller: RawCaller, label: str) -> None:
    """Given each voice provider, then the artifact begins with a frame's sync or an ID3 tag."""
    run = caller.run("speech.generate", {"text": "Good morning."}, provider=NAMES[label])
    artifact_id = run["data"]["artifact_id"]
    assert caller.get(f"/v1/artifacts/{artifact_id}")["data"]["media_type"] == "audio/mpeg"
    content = caller.send("GET", f"/v1/artifacts/{artifact_id}/content").content
    assert content[:3] == b"ID3" or (content[0] == 0xFF and content[1] & 0xE0 == 0xE0)


@section(f"{RESOURCES} > Registered capabilities")
def test_a_voice_clone_needs_reference_audio(caller: RawCaller) -> None:
    """Given no reference audio, then the run is rejected."""
    body = build_run_body("voice.clone", {"name": "me"})
    error = caller.read_error("POST", "/v1/runs", body)
    assert error == (400, "INVALID_REQUEST", ["input.reference_audio"])


PAIRS = [
    (name, label, label in labels)
    for name, (labels, _, needs_connection) in REGISTERED.items()
    if needs_connection
    for label in VENDORS
]


@section(f"{RESOURCES} > Registered capabilities")
@pytest.mark.parametrize(("name", "label"), [pair[:2] for pair in PAIRS if pair[2]])
def test_any_allowed_connection_serves_alone(service: RawCaller, name: str, label: str) -> None:
    """Given one allowed connection, then its provider serves, whether it is pinned or not."""
    account = service.sign_up(NAMES[label])
    for options in ({}, {"provider": NAMES[label]}):
        run = account.run(name, build_input(account, name), **options)
        assert (run["status"], run["data"]["provider"]) == ("completed", NAMES[label])


@section(f"{RESOURCES} > Registered capabilities")
@pytest.mark.parametrize(("name", "label"), [pair[:2] for pair in PAIRS if not pair[2]])
def test_rejects_any_other_connection(service: RawCaller, name: str, label: str) -> None:
    """Given only a connection that is not allowed, then it neither serves nor can be pinned."""
    account = service.sign_up(NAMES[label])
    body = build_run_body(name, build_input(account, name))
    for options, code in (
        ({}, "CREDENTIALS_MISSING"),
        ({"provider": NAMES[label]}, "PROVIDER_NOT_ALLOWED"),
    ):
        error = account.read_error("POST", "/v1/runs", {**body, "options": options})
        assert (error.status, error.code) == (400, code)


@section(f"{RESOURCES} > Registered capabilities")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/endpoints", {}),
        ("/v1/compute", {"name": "easel", "gpu_type": "NVIDIA A40"}),
        ("/v1/storage", {"name": "weights", "size_gb": 20}),
    ],
)
def test_gpu_infrastructure_accepts_only_v7(service: RawCaller, path: str, body: Json) -> None:
    """Given all connections but V7, then infrastructure is rejected; V7 alone creates it."""
    others = service.sign_up(*(name for label, name in NAMES.items() if label != "V7"))
    error = others.read_error("POST", path, body)
    assert (error.status, error.code) == (400, "CREDENTIALS_MISSING")
    assert service.sign_up(NAMES["V7"]).send("POST", path, body).status_code == 201


@section(f"{RESOURCES} > Serverless endpoint (ep_)")
@section("Limits")
def test_an_endpoint_has_the_defaults(caller: RawCaller) -> None:
    """Given an empty body, then each field has its default, and the GPU pool is of the catalog."""
    endpoint = caller.create("/v1/endpoints", {})
    defaults = {
        "name": "toolkit-endpoint",
        "workers_min": 0,
        "workers_max": 1,
        "storage_id": None,
        "image": "",
    }
    pools = {gpu["pool"] for gpu in caller.get("/v1/catalog/gpus")["data"]["items"]}
    for record in (endpoint, caller.get(f"/v1/endpoints/{endpoint['id']}")):
        assert defaults.items() <= record["data"].items()
        assert record["data"]["gpu_ids"] in pools


@section(f"{RESOURCES} > Serverless endpoint (ep_)")
def test_an_endpoint_keeps_every_field(caller: RawCaller) -> None:
    """Given every field, then the endpoint has them, and `template_id` is our `tpl_` id."""
    template = {"name": "worker", "image": "example/worker:1"}
    fields = {
        "name": "studio",
        "gpu_ids": "AMPERE_48",
        "workers_min": 1,
        "workers_max": 3,
        "storage_id": caller.create("/v1/storage", {"name": "weights", "size_gb": 20})["id"],
        "template_id": caller.create("/v1/templates", template)["id"],
        "image": "example/worker:2",
    }
    endpoint = caller.create("/v1/endpoints", fields)
    assert fields.items() <= endpoint["data"].items()
    assert endpoint["data"]["template_id"].startswith("tpl_")
    assert fields.items() <= caller.get(f"/v1/endpoints/{endpoint['id']}")["data"].items()


@section(f"{RESOURCES} > Serverless endpoint (ep_)")
@pytest.mark.parametrize("fields", [{}, {"image": "example/worker:1"}])
def test_a_template_id_is_never_the_vendors(caller: RawCaller, fields: Json) -> None:
    """Given no template, then `template_id` is null or an id of the service."""
    template_id = caller.create("/v1/endpoints", fields)["data"]["template_id"]
    assert re.fullmatch(r"None|tpl_[0-9a-z]{26}", str(template_id))
