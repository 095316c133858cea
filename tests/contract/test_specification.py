"""The specification's tables, row by row: resources, their fields and defaults, limits, codes.

Expectations are the specification's own words, as literals; requests are raw HTTP. Its sentences
are tried by the modules of `specification` beside this one, of which `test_complete.py` says what
was left out.
"""

import re
import wave
from collections.abc import Iterable
from io import BytesIO
from itertools import product
from typing import Any

import jsonschema
import pytest

from tests.contract.raw_http import NAMES, POINTER, VENDORS, Json, RawCaller
from tests.contract.specification.sections import section
from toolkit.vendors import load_vendors

pytestmark = pytest.mark.sqlite("other tests have its statements")

RESOURCES = "Resources and their fields"
LLM = ["V1", "V2", "V3", "V4", "V6", "V7"]
VOICE = ["V4", "V5"]
TEA = {"id": "a", "capability": "research.gather", "input": {"topic": "Tea"}}


def with_label(providers: Iterable[str | None]) -> list[str | None]:
    """Those that the specification knows, by a label or as none: others may be added."""
    return [one for one in providers if one is None or one in NAMES.values()]


def provider_ids(labels: list[str]) -> list[str]:
    """The connection ids behind labels."""
    return [NAMES[label] for label in labels]


# --- Response envelope, Id prefixes ---
RESEARCH = {
    "target": "capability",
    "name": "research.gather",
    "version": "1",
    "input": {"topic": "Tea"},
}
CREATED: dict[str, tuple[str, Json]] = {
    "prv_": ("/v1/providers/connections", POINTER),
    "run_": ("/v1/runs", RESEARCH),
    "ep_": ("/v1/endpoints", {}),
    "tpl_": ("/v1/templates", {"name": "worker", "image": "example/worker:1"}),
    "sto_": ("/v1/storage", {"name": "weights", "size_gb": 20}),
    "tsk_": ("/v1/tasks", {"objective": "A short text about tea"}),
    "wfl_": ("/v1/workflows", {"name": "w", "nodes": [TEA]}),
}


@section(f"{RESOURCES} > Id prefixes")
@section(f"{RESOURCES} > Response envelope")
@pytest.mark.parametrize("prefix", CREATED)
def test_a_create_response_is_an_envelope_with_a_prefixed_id(
    caller: RawCaller, prefix: str
) -> None:
    """Given what is created, then `id` has the resource's prefix and `data` is its payload."""
    made = caller.create(*CREATED[prefix])
    assert re.fullmatch(rf"{prefix}[0-9a-z]+", made["id"])
    assert made["data"]["id"] == made["id"]
    assert "error" not in made


@section(f"{RESOURCES} > Response envelope")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/capabilities/no.such", None),
        ("POST", "/v1/runs", {"target": "capability", "name": "no.such", "input": {}}),
        ("POST", "/v1/tasks", {}),
        ("POST", "/v1/workflows", {"name": "w", "nodes": []}),
        ("GET", "/v1/endpoints/ep_none", None),
        ("DELETE", "/v1/endpoints/ep_none", None),
    ],
)
def test_error_code_is_present_on_failure(
    caller: RawCaller, method: str, path: str, body: Json | None
) -> None:
    """Given a request that fails, then `error.code` is a code string and there is no payload."""
    answer = caller.send(method, path, body)
    assert answer.status_code >= 400
    assert re.fullmatch(r"[A-Z]+(_[A-Z]+)*", answer.json()["error"]["code"])
    assert "data" not in answer.json()


# --- Provider connection ---


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
@pytest.mark.parametrize("provider", [name for name, _ in VENDORS.values()])
def test_a_connection_is_a_pointer(
    stranger: RawCaller, provider: str, connection_type: str, secret_ref: str
) -> None:
    """Given each provider and each type, then the record is the pointer as it was sent."""
    fields = {
        "provider": provider,
        "connection_type": connection_type,
        "secret_ref": secret_ref,
    }
    made = stranger.create("/v1/providers/connections", fields)
    assert fields.items() <= made["data"].items()
    read = stranger.get(f"/v1/providers/connections/{made['id']}")
    assert fields.items() <= read["data"].items()
    assert stranger.send("DELETE", f"/v1/providers/connections/{made['id']}").status_code == 200


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
def test_a_connection_of_another_kind_is_refused(
    stranger: RawCaller, field: str, value: str
) -> None:
    """Given a type, provider or secret that the table does not have, then it is not stored."""
    answer = stranger.send("POST", "/v1/providers/connections", {**POINTER, field: value})
    assert answer.status_code == 400
    assert [one["path"] for one in answer.json()["error"]["details"]] == [field]
    assert stranger.get("/v1/providers/connections")["data"]["items"] == []


# --- Capability object ---


def is_schema(value: Any) -> bool:
    """Tell whether it is a JSON-schema style shape of an object."""
    jsonschema.Draft202012Validator.check_schema(value)
    return isinstance(value, dict) and value.get("type") == "object" and "properties" in value


def is_backend(value: Any) -> bool:
    """Tell whether it is a backend: the connection that it requires, if any, and its own status."""
    required = value["requires_connection"]
    known = (None, *NAMES.values(), *load_vendors())
    return required in known and value["status"] in ("available", "planned")


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
@pytest.mark.parametrize("field", FIELDS)
def test_a_capability_has_the_field(caller: RawCaller, field: str) -> None:
    """Given each capability, then the field is there and is what the table says."""
    items = caller.get("/v1/capabilities")["data"]["items"]
    assert [c["id"] for c in items if not FIELDS[field](c)] == []


# --- Registered capabilities ---

# id: version, status, who may serve it, who does by default, whether a connection is needed
REGISTERED: dict[str, tuple[str, str, list[str], str | None, bool]] = {
    "image.generate": ("1", "available", ["V7"], "V7", True),
    "research.gather": ("1", "available", LLM, None, False),
    "composition.layout": ("1", "available", [], None, False),
    "llm.generate": ("1", "available", LLM, "V4", True),
    "text.generate": ("1", "available", LLM, "V4", True),
    "speech.generate": ("1", "available", VOICE, "V4", True),
    "voice.clone": ("1", "available", VOICE, "V4", True),
}


@section(f"{RESOURCES} > Registered capabilities")
@pytest.mark.parametrize("name", REGISTERED)
def test_a_registered_capability_is_as_its_row(caller: RawCaller, name: str) -> None:
    """Given a row of the table, then version, status and routing are as it says."""
    version, status, labels, default, required = REGISTERED[name]
    shown = caller.get(f"/v1/capabilities/{name}")["data"]
    assert (shown["id"], shown["version"], shown["status"]) == (name, version, status)
    routing = shown["source"]["routing"]
    assert sorted(with_label(routing["allowed_connections"]), key=str) == sorted(
        provider_ids(labels)
    )
    assert routing["default_provider"] == (default and NAMES[default])
    backends = [one["requires_connection"] for one in shown["source"]["providers"]]
    assert sorted(with_label(backends), key=str) == sorted(
        provider_ids(labels) if required else [None], key=str
    )


@section(f"{RESOURCES} > Registered capabilities")
def test_the_seven_come_first(caller: RawCaller) -> None:
    """Given a service, then it has the rows of the table, in its order, before any other."""
    listed = caller.get("/v1/capabilities")["data"]
    assert [(c["id"], c["version"]) for c in listed["items"]][:7] == [
        ("image.generate", "1"),
        ("research.gather", "1"),
        ("composition.layout", "1"),
        ("llm.generate", "1"),
        ("text.generate", "1"),
        ("speech.generate", "1"),
        ("voice.clone", "1"),
    ]


def reference_audio(caller: RawCaller) -> str:
    """The id of an upload of a voice: twelve seconds of sound."""
    sound = BytesIO()
    with wave.open(sound, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"\x00\x10" * 8000 * 12)
    key = {"Authorization": f"Bearer {caller.key}"}
    files = {"file": ("voice.wav", sound.getvalue())}
    return str(caller.http.post("/v1/artifacts", headers=key, files=files).json()["id"])


INPUTS: dict[str, Json] = {
    "image.generate": {"prompt": "a lighthouse", "steps": 2, "width": 256, "height": 256},
    "research.gather": {"topic": "Tidal power"},
    "composition.layout": {"title": "Tidal power"},
    "llm.generate": {"objective": "One line on tea"},
    "text.generate": {"objective": "One line on tea"},
    "speech.generate": {"text": "Good morning."},
}


def input_of(caller: RawCaller, name: str) -> Json:
    """An input of a capability; the smallest of pictures, as they take long to draw."""
    if name == "voice.clone":
        return {"reference_audio": reference_audio(caller), "name": "narrator"}
    return INPUTS[name]


@section(f"{RESOURCES} > Registered capabilities")
@pytest.mark.parametrize("name", REGISTERED)
def test_a_registered_capability_does_its_work(caller: RawCaller, name: str) -> None:
    """Given every connection, then it completes, at its default provider where one is needed."""
    ended = caller.run(name, input_of(caller, name))
    assert ended["status"] == "completed", ended
    assert ended["data"]["output"]
    default = REGISTERED[name][3]
    if default is not None:
        assert ended["data"]["provider"] == NAMES[default]


@section(f"{RESOURCES} > Registered capabilities")
@pytest.mark.parametrize("name", [name for name, row in REGISTERED.items() if not row[4]])
def test_no_connection_is_required(stranger: RawCaller, name: str) -> None:
    """Given no connection, then what works on the CPU completes, and no vendor is called."""
    ended = stranger.run(name, INPUTS[name])
    assert (ended["status"], ended["data"]["provider"]) == ("completed", None)


@section(f"{RESOURCES} > Registered capabilities")
@pytest.mark.parametrize("label", LLM)
def test_research_is_synthesized_when_an_llm_is_connected(service: RawCaller, label: str) -> None:
    """Given an LLM connection, then the research has a synthesis that it lacks without one."""
    alone = service.sign_up(NAMES[label])
    ended = alone.run("research.gather", {"topic": "Tidal power"})
    assert ended["status"] == "completed"
    assert ended["data"]["output"]["synthesis"]
    assert ended["data"]["provider"] == NAMES[label]


@section(f"{RESOURCES} > Registered capabilities")
def test_research_without_an_llm_has_no_synthesis(stranger: RawCaller) -> None:
    """Given no LLM, then research is the encyclopedia's alone."""
    ended = stranger.run("research.gather", {"topic": "Tidal power"})
    assert ended["data"]["output"].get("synthesis") is None


@section(f"{RESOURCES} > Registered capabilities")
def test_text_generate_is_an_alias_of_llm_generate(caller: RawCaller) -> None:
    """Given the alias, then it takes, answers and is routed as what it stands for."""
    text, llm = (caller.get(f"/v1/capabilities/{n}.generate")["data"] for n in ("text", "llm"))
    for field in ("source", "async", "estimated_cost", "invoke", "targets"):
        assert text[field] == llm[field]
    for field in ("input_schema", "output_schema"):
        assert set(text[field]["properties"]) == set(llm[field]["properties"])
        assert text[field].get("required") == llm[field].get("required")


@section(f"{RESOURCES} > Registered capabilities")
@pytest.mark.parametrize("label", VOICE)
def test_speech_is_mp3(caller: RawCaller, label: str) -> None:
    """Given each voice provider, then the artifact is an MP3: a frame's sync, or an ID3 tag."""
    ended = caller.run("speech.generate", {"text": "Good morning."}, provider=NAMES[label])
    artifact = ended["data"]["artifact_id"]
    assert caller.get(f"/v1/artifacts/{artifact}")["data"]["media_type"] == "audio/mpeg"
    content = caller.send("GET", f"/v1/artifacts/{artifact}/content").content
    assert content[:3] == b"ID3" or (content[0] == 0xFF and content[1] & 0xE0 == 0xE0)


@section(f"{RESOURCES} > Registered capabilities")
def test_a_voice_clone_needs_reference_audio(caller: RawCaller) -> None:
    """Given no reference audio, then the clone is refused before anything is made."""
    run = {"target": "capability", "name": "voice.clone", "version": "1", "input": {"name": "me"}}
    answer = caller.send("POST", "/v1/runs", run)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")
    assert "reference_audio" in answer.text


# --- Routing rules ---

ALLOWED = {
    "llm.generate": LLM,
    "text.generate": LLM,
    "speech.generate": VOICE,
    "voice.clone": VOICE,
    "image.generate": ["V7"],
}


@section(f"{RESOURCES} > Registered capabilities")
@pytest.mark.parametrize(
    ("name", "label"),
    [pair for pair in product(ALLOWED, VENDORS) if pair[1] in ALLOWED[pair[0]]],
)
def test_any_allowed_connection_serves_alone(service: RawCaller, name: str, label: str) -> None:
    """Given one allowed connection and no other, then it does the work, pinned or not."""
    alone = service.sign_up(NAMES[label])
    for options in ({}, {"provider": NAMES[label]}):
        ended = alone.run(name, input_of(alone, name), **options)
        assert (ended["status"], ended["data"]["provider"]) == ("completed", NAMES[label])


@section(f"{RESOURCES} > Registered capabilities")
@pytest.mark.parametrize("name", ["llm.generate", "text.generate"])
@pytest.mark.parametrize("pinned", [True, False])
def test_the_gpu_cloud_s_llm_serves_with_an_endpoint(
    service: RawCaller, name: str, pinned: bool
) -> None:
    """Given V7 alone and an endpoint, then text is written: there, where V7 is pinned to it."""
    alone = service.sign_up(NAMES["V7"])
    options = {"endpoint_id": alone.create("/v1/endpoints", {})["id"]}
    if pinned:
        options["provider"] = NAMES["V7"]
    ended = alone.run(name, input_of(alone, name), **options)
    assert (ended["status"], ended["data"]["provider"]) == ("completed", NAMES["V7"])


@section(f"{RESOURCES} > Registered capabilities")
@pytest.mark.parametrize(
    ("name", "label"),
    [pair for pair in product(ALLOWED, VENDORS) if pair[1] not in ALLOWED[pair[0]]],
)
def test_no_other_connection_serves(service: RawCaller, name: str, label: str) -> None:
    """Given only a connection that is not accepted, then it neither serves nor can be pinned."""
    alone = service.sign_up(NAMES[label])
    run = {"target": "capability", "name": name, "version": "1", "input": input_of(alone, name)}
    for options, code in (
        ({}, "CREDENTIALS_MISSING"),
        ({"provider": NAMES[label]}, "PROVIDER_NOT_ALLOWED"),
    ):
        answer = alone.send("POST", "/v1/runs", {**run, "options": options})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


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
    """Given all connections but V7, then infrastructure is refused; with V7 alone, it is made."""
    others = service.sign_up(*(name for label, name in NAMES.items() if label != "V7"))
    answer = others.send("POST", path, body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "CREDENTIALS_MISSING")
    assert service.sign_up(NAMES["V7"]).send("POST", path, body).status_code == 201


# --- Serverless endpoint ---


@section(f"{RESOURCES} > Serverless endpoint (ep_)")
@section("Limits")
@pytest.mark.parametrize(
    ("field", "default"),
    [
        ("name", "toolkit-endpoint"),
        ("workers_min", 0),
        ("workers_max", 1),
        ("storage_id", None),
        ("image", ""),
    ],
)
def test_an_endpoint_has_the_default(caller: RawCaller, field: str, default: object) -> None:
    """Given nothing, then the field has the default of the table."""
    made = caller.create("/v1/endpoints", {})
    assert made["data"][field] == default
    assert caller.get(f"/v1/endpoints/{made['id']}")["data"][field] == default


@section(f"{RESOURCES} > Serverless endpoint (ep_)")
def test_the_default_gpu_ids_are_a_pool_of_the_catalog(caller: RawCaller) -> None:
    """Given no `gpu_ids`, then the platform's default is a serverless pool of the catalog."""
    pool = caller.create("/v1/endpoints", {})["data"]["gpu_ids"]
    assert pool in {gpu["pool"] for gpu in caller.get("/v1/catalog/gpus")["data"]["items"]}


@section(f"{RESOURCES} > Serverless endpoint (ep_)")
def test_an_endpoint_keeps_every_field(caller: RawCaller) -> None:
    """Given every field, then the endpoint has them, and `template_id` is our `tpl_` id."""
    storage = caller.create("/v1/storage", {"name": "weights", "size_gb": 20})["id"]
    template = caller.create("/v1/templates", CREATED["tpl_"][1])["id"]
    fields = {
        "name": "studio",
        "gpu_ids": "AMPERE_48",
        "workers_min": 1,
        "workers_max": 3,
        "storage_id": storage,
        "template_id": template,
        "image": "example/worker:2",
    }
    made = caller.create("/v1/endpoints", fields)
    assert fields.items() <= made["data"].items()
    assert template.startswith("tpl_")
    assert fields.items() <= caller.get(f"/v1/endpoints/{made['id']}")["data"].items()


@section(f"{RESOURCES} > Serverless endpoint (ep_)")
@pytest.mark.parametrize("fields", [{}, {"image": "example/worker:1"}])
def test_a_template_id_is_never_the_vendors(caller: RawCaller, fields: Json) -> None:
    """Given no template, then `template_id` is none, or one of the service's own ids."""
    made = caller.create("/v1/endpoints", fields)
    assert "template_id" in made["data"]
    assert re.fullmatch(r"None|tpl_[0-9a-z]{26}", str(made["data"]["template_id"]))
