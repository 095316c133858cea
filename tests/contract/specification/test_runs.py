"""Runs: the request, combinations of its options, and the result."""

import re
from itertools import product

import jsonschema
import pytest

from tests.contract.raw_http import NAMES, Json, RawCaller, build_run_body
from tests.contract.specification.sections import section

pytestmark = [section("Endpoints > Runs")]

VERSIONING = "Versioning"
SMALL = {"width": 256, "height": 256}
RESEARCH = build_run_body("research.gather", {"topic": "Tea"})

# "Input shapes shown"
SHAPES: dict[str, Json] = {
    "research.gather": {"topic": "Tidal power"},
    "llm.generate": {"objective": "One line on tidal power"},
    "speech.generate": {"text": "Good morning."},
    "image.generate": {"prompt": "a lighthouse by the sea", "steps": 4},
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_input_schema_has_the_shape(caller: RawCaller, name: str) -> None:
    """Given the schema, then it accepts the shape shown, with its members and types."""
    schema = caller.get(f"/v1/capabilities/{name}")["data"]["input_schema"]
    jsonschema.validate(SHAPES[name], schema)
    types = {str: "string", int: "integer"}
    for member, value in SHAPES[name].items():
        assert schema["properties"][member]["type"] == types[type(value)]
    # Required members are among those shown, so that a caller who uses the shape is not rejected.
    assert set(schema.get("required", ())) <= set(SHAPES[name])


INVALID = [
    *(
        ({name: value}, "INVALID_REQUEST", name)
        for name in ("target", "name", "version", "input", "options")
        for value in (3, True, [], None)
        if (name, value) != ("version", None)  # the same as no version
    ),
    *(({"target": name}, "TARGET_UNSUPPORTED", "") for name in ("marketplace", "", "Capability")),
    ({"target": "workflow", "input": {}}, "TARGET_UNSUPPORTED", ""),  # even if the rest is invalid
    *(({"version": name}, "NOT_FOUND", "") for name in ("2", "0", "1.0", "01", "latest")),
    *(
        ({"options": {"optimize_for": value}}, "INVALID_REQUEST", "options.optimize_for")
        for value in ("cheapness", "", "COST", 1)
    ),
    # A vendor is named in `options.provider` alone, and a model nowhere.
    *(({name: "openai"}, "INVALID_REQUEST", name) for name in ("model", "vendor", "provider")),
    ({"options": {"model": "gpt"}}, "INVALID_REQUEST", "options.model"),
]


@section("What the service does")
@section("Versioning")
@section("Errors")
@pytest.mark.parametrize(("fields", "code", "path"), INVALID)
def test_rejects_an_invalid_run(caller: RawCaller, fields: Json, code: str, path: str) -> None:
    """Given a field that the table does not allow, then the field is named."""
    error = caller.read_error("POST", "/v1/runs", {**RESEARCH, **fields})
    assert (error.code, "".join(error.paths[:1])) == (code, path)
    assert error.status == (404 if code == "NOT_FOUND" else 400)


@pytest.mark.parametrize("name", ["name", "input"])
def test_a_run_needs_its_name_and_input(caller: RawCaller, name: str) -> None:
    """Given a run without its name or its input, then the field is named."""
    body = {field: value for field, value in RESEARCH.items() if field != name}
    error = caller.read_error("POST", "/v1/runs", body)
    assert error[:2] == (400, "INVALID_REQUEST")
    assert error.paths[0].partition(".")[0] == name


SERVES = {
    "research.gather": ("openai", "google"),
    "llm.generate": ("openai", "google"),
    "speech.generate": ("minimax", "elevenlabs"),
    "image.generate": ("runpod",),
}


@section("States and transitions > Run status")
@section("Resources and their fields > Run")
@pytest.mark.parametrize(
    ("name", "provider", "at_endpoint"),
    [
        (name, provider, at_endpoint)
        for name, providers in SERVES.items()
        for provider in (None, *providers)
        for at_endpoint in ([False, True] if name == "image.generate" else [False])
    ],
)
@pytest.mark.parametrize("optimize_for", [None, "cost"])
def test_options_combine(
    caller: RawCaller,
    places: dict[str, str],
    name: str,
    optimize_for: str | None,
    provider: str | None,
    at_endpoint: bool,
) -> None:
    """Given a combination of `optimize_for`, `provider`, `endpoint_id`, then it is obeyed."""
    values = {
        "optimize_for": optimize_for,
        "provider": provider,
        "endpoint_id": places["endpoint_id"] if at_endpoint else None,
    }
    options = {option: value for option, value in values.items() if value is not None}
    run = caller.run(name, SHAPES[name] | (SMALL if name == "image.generate" else {}), **options)
    assert run["status"] == "completed", run
    assert run["data"]["output"]
    assert options.items() <= run["data"]["options"].items()
    assert provider in (None, run["data"]["provider"])


def test_a_run_at_an_endpoint_is_sent_there(caller: RawCaller, places: dict[str, str]) -> None:
    """Given `endpoint_id`, then the call is sent to that endpoint, and without it to another."""
    caller.faults.forget_calls()
    for options in ({"endpoint_id": places["endpoint_id"]}, {}):
        assert caller.run("image.generate", SHAPES["image.generate"] | SMALL, **options)
    paths = {call.path for call in caller.faults.calls if call.path.endswith("/run")}
    assert len(paths) == 2


@pytest.mark.parametrize("name", ["llm.generate", "text.generate"])
def test_optimizing_for_cost_chooses_the_lowest_estimate(caller: RawCaller, name: str) -> None:
    """Given `cost`, then the candidates are ordered by their estimates."""
    run = caller.run(name, {"objective": "One line on tea"}, optimize_for="cost")
    candidates = [c for c in run["data"]["routing"]["candidates"] if not c["excluded"]]
    costs = [c["estimated_cost_usd"] for c in candidates]
    prices = [cost for cost in costs if cost is not None]
    assert len(prices) > 2
    assert costs[: len(prices)] == sorted(prices)  # an unknown price is never cheap
    assert run["data"]["provider"] == candidates[0]["provider"]


@pytest.mark.parametrize("steps", [1, 8, 9, 50])
def test_the_cheapest_image_model_accepts_any_number_of_steps(
    caller: RawCaller, steps: int
) -> None:
    """Given `cost` and a number of steps within the schema, then the run completes."""
    input = {"prompt": "a lighthouse", "steps": steps, **SMALL}
    assert caller.run("image.generate", input, optimize_for="cost")["status"] == "completed"


@section("What the service does")
def test_no_input_schema_has_a_vendor_or_a_model(caller: RawCaller) -> None:
    """Given every capability, then its input has no member for either."""
    for item in caller.get("/v1/capabilities")["data"]["items"]:
        assert not {"model", "vendor", "provider"} & set(item["input_schema"]["properties"])


@section("What the service does")
def test_routes_a_run_to_a_connection_of_its_caller(service: RawCaller) -> None:
    """Given two callers, then each run uses the connection of its own caller."""
    for _ in range(2):
        account = service.sign_up()
        connection_id = account.connect("anthropic")
        run = account.run("llm.generate", {"objective": "Tea"})
        assert run["data"]["connection_id"] == connection_id


@section(VERSIONING)
@pytest.mark.parametrize(
    ("name", "version", "target"),
    list(
        product(
            ["research.gather", "research.gather@1"],
            [{}, {"version": "1"}, {"version": None}],
            [{}, {"target": "capability"}],
        )
    ),
)
def test_a_version_may_stand_in_the_name(
    caller: RawCaller, name: str, version: Json, target: Json
) -> None:
    """Given the version in either place, or in none, then version 1 runs."""
    body = {"input": {"topic": "Tea"}, "name": name, **version, **target}
    run = caller.create("/v1/runs", body)
    assert run["data"]["capability"] == "research.gather@1"


@section("Events")
def test_polling_alone_reaches_the_result(caller: RawCaller) -> None:
    """Given polls and nothing else, then the states are read in their order."""
    run = caller.create("/v1/runs", build_run_body("llm.generate", SHAPES["llm.generate"]))
    states = [run["status"]]
    while states[-1] != "completed":
        states.append(caller.get(f"/v1/runs/{run['id']}")["status"])
    assert re.fullmatch(r"(queued )*(running )*(completed )", " ".join([*states, ""]))


@section("Errors")
@section("Authentication")
@pytest.mark.parametrize("name", ["llm.generate", "speech.generate", "image.generate"])
def test_without_a_connection_credentials_are_missing(stranger: RawCaller, name: str) -> None:
    """Given no matching connection, then 400 `CREDENTIALS_MISSING`, and nothing is stored."""
    response = stranger.send("POST", "/v1/runs", build_run_body(name, SHAPES[name]))
    assert (response.status_code, response.json()["error"]["code"]) == (400, "CREDENTIALS_MISSING")
    assert any(provider in response.text for provider in NAMES.values())
    assert stranger.get("/v1/runs")["data"]["items"] == []
