"""Runs: how one is asked for, every combination of its options, and what it comes to."""

import re
from itertools import product

import pytest

from tests.contract.raw_http import NAMES, Json, RawCaller
from tests.contract.specification.pairwise import pairwise
from tests.contract.specification.sections import section

RUNS = "Endpoints > Runs"
SMALL = {"width": 256, "height": 256}

# "Input shapes shown"
SHAPES: dict[str, Json] = {
    "research.gather": {"topic": "Tidal power"},
    "llm.generate": {"objective": "One line on tidal power"},
    "speech.generate": {"text": "Good morning."},
    "image.generate": {"prompt": "a lighthouse by the sea", "steps": 4},
}


def build_run_body(name: str, given: Json, **changes: object) -> Json:
    """The body of a run as the table of `POST /v1/runs` has it."""
    return {"target": "capability", "name": name, "version": "1", "input": given, **changes}


@section(RUNS)
@section("States and transitions > Run status")
@section("Resources and their fields > Run")
@pytest.mark.parametrize("name", SHAPES)
def test_an_input_of_the_shape_shown_completes(caller: RawCaller, name: str) -> None:
    """Given the shape shown, then the envelope has a `run_` id, and polling finds the output."""
    answer = caller.send("POST", "/v1/runs", build_run_body(name, SHAPES[name]))
    assert answer.is_success, answer.text
    run_id = answer.json()["id"]
    assert run_id.startswith("run_")
    ended = caller.poll(f"/v1/runs/{run_id}", "completed")
    assert ended["id"] == run_id
    assert isinstance(ended["data"]["output"], dict)
    assert ended["data"]["output"]
    assert "error" not in ended


@section(RUNS)
@pytest.mark.parametrize("name", SHAPES)
def test_the_input_schema_has_the_shape(caller: RawCaller, name: str) -> None:
    """Given the schema served, then it takes the shape shown, with those members and types."""
    import jsonschema

    shown = caller.get(f"/v1/capabilities/{name}")["data"]
    jsonschema.validate(SHAPES[name], shown["input_schema"])
    types = {str: "string", int: "integer"}
    for member, value in SHAPES[name].items():
        assert shown["input_schema"]["properties"][member]["type"] == types[type(value)]
    # What is required is among what is shown: no caller of the shapes is refused.
    assert set(shown["input_schema"].get("required", ())) <= set(SHAPES[name])


@section(RUNS)
@pytest.mark.parametrize("name", ["target", "name", "version", "input", "options"])
@pytest.mark.parametrize("wrong", [3, True, [], None])
def test_a_field_of_another_type_is_refused(caller: RawCaller, name: str, wrong: object) -> None:
    """Given a field that is not of the table's type, then the field is named."""
    body = {**build_run_body("research.gather", {"topic": "Tea"}), name: wrong}
    answer = caller.send("POST", "/v1/runs", body)
    if name == "version" and wrong is None:
        assert answer.is_success  # as if left out
        return
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")
    assert answer.json()["error"]["details"][0]["path"] == name


@section(RUNS)
@pytest.mark.parametrize("name", ["name", "input"])
def test_a_field_that_is_needed_is_named(caller: RawCaller, name: str) -> None:
    """Given a run without its name or its input, then it is refused by that field."""
    body = build_run_body("research.gather", {"topic": "Tea"})
    del body[name]
    answer = caller.send("POST", "/v1/runs", body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")
    assert answer.json()["error"]["details"][0]["path"].partition(".")[0] == name


@section(RUNS)
@section("Versioning")
@pytest.mark.parametrize("target", ["marketplace", "workflow", "", "Capability"])
def test_an_upcoming_target_is_not_taken_for_a_capability(caller: RawCaller, target: str) -> None:
    """Given another target, then it is refused by that code, whatever the rest."""
    answer = caller.send("POST", "/v1/runs", build_run_body("llm.generate", {}, target=target))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "TARGET_UNSUPPORTED")


# --- Every combination of the options shown, with each capability whose input is shown ---

LEFT_OUT = "left out"
SERVES = {
    "research.gather": ("openai", "google"),
    "llm.generate": ("openai", "google"),
    "speech.generate": ("minimax", "elevenlabs"),
    "image.generate": ("runpod", "runpod"),
}
COMBINATIONS = [
    {"name": name, "optimize_for": optimize_for, "provider": provider, "endpoint_id": endpoint}
    for name, optimize_for, provider, endpoint in product(
        SHAPES, (LEFT_OUT, "cost"), (LEFT_OUT, "first", "second"), (LEFT_OUT, "its own")
    )
    if name == "image.generate" or endpoint == LEFT_OUT  # "`ep_` id, for image generation"
]


@pytest.fixture(scope="module")
def endpoint_id(caller: RawCaller) -> str:
    """A serverless endpoint."""
    return str(caller.create("/v1/endpoints", {})["id"])


@section(RUNS)
@pytest.mark.parametrize("chosen", COMBINATIONS, ids=lambda row: "-".join(row.values()))
def test_the_options_go_together(
    caller: RawCaller, endpoint_id: str, chosen: dict[str, str]
) -> None:
    """Given a combination of `optimize_for`, `provider`, `endpoint_id`, then it is obeyed."""
    name, options = chosen["name"], {}
    if chosen["optimize_for"] != LEFT_OUT:
        options["optimize_for"] = chosen["optimize_for"]
    if chosen["provider"] != LEFT_OUT:
        options["provider"] = SERVES[name][chosen["provider"] == "second"]
    if chosen["endpoint_id"] != LEFT_OUT:
        options["endpoint_id"] = endpoint_id
    given = SHAPES[name] | (SMALL if name == "image.generate" else {})
    ended = caller.run(name, given, **options)
    assert ended["status"] == "completed", ended
    assert options.items() <= ended["data"]["options"].items()
    if "provider" in options:
        assert ended["data"]["provider"] == options["provider"]


@section(RUNS)
def test_a_run_at_an_endpoint_is_run_there(caller: RawCaller, endpoint_id: str) -> None:
    """Given `endpoint_id`, then the call goes to that endpoint, and without it to another."""
    caller.faults.forget_calls()
    for options in ({"endpoint_id": endpoint_id}, {}):
        assert caller.run("image.generate", SHAPES["image.generate"] | SMALL, **options)
    where = [call.path for call in caller.faults.calls if call.path.endswith("/run")]
    assert len(set(where)) == 2


@section(RUNS)
@pytest.mark.parametrize("name", ["llm.generate", "text.generate"])
def test_optimizing_for_cost_takes_the_lowest_estimate(caller: RawCaller, name: str) -> None:
    """Given `cost`, then no other candidate that was kept is expected to cost less."""
    run = caller.run(name, {"objective": "One line on tea"}, optimize_for="cost")
    kept = [c for c in run["data"]["routing"]["candidates"] if not c["excluded"]]
    costs = [c["estimated_cost_usd"] for c in kept]
    known = [cost for cost in costs if cost is not None]
    assert len(known) > 2
    assert costs[: len(known)] == sorted(known)  # an unknown price is never cheap
    assert run["data"]["provider"] == kept[0]["provider"]


@section(RUNS)
@pytest.mark.parametrize("steps", [1, 8, 9, 50])
def test_the_cheapest_picture_takes_any_number_of_steps(caller: RawCaller, steps: int) -> None:
    """Given `cost` and a number of steps that the schema takes, then the cheapest model draws."""
    given = {"prompt": "a lighthouse", "steps": steps, **SMALL}
    assert caller.run("image.generate", given, optimize_for="cost")["status"] == "completed"


@section(RUNS)
@pytest.mark.parametrize("optimize_for", ["cheapness", "", "COST", 1])
def test_another_aim_is_refused(caller: RawCaller, optimize_for: object) -> None:
    """Given an aim that there is not, then it is named."""
    body = build_run_body(
        "llm.generate", {"objective": "Tea"}, options={"optimize_for": optimize_for}
    )
    answer = caller.send("POST", "/v1/runs", body)
    assert answer.status_code == 400
    assert answer.json()["error"]["details"][0]["path"] == "options.optimize_for"


@section("What the service does")
@pytest.mark.parametrize("member", ["model", "vendor", "provider", "options.model"])
def test_no_body_names_a_vendor_or_a_model(caller: RawCaller, member: str) -> None:
    """Given a vendor or model anywhere but in `options.provider`, then it is refused by name."""
    body = build_run_body("llm.generate", {"objective": "Tea"}, options={})
    *inside, last = member.split(".")
    (body[inside[0]] if inside else body)[last] = "openai"
    answer = caller.send("POST", "/v1/runs", body)
    assert answer.status_code == 400
    assert [one["path"] for one in answer.json()["error"]["details"]] == [member]


@section("What the service does")
def test_no_input_schema_has_a_vendor_or_a_model(caller: RawCaller) -> None:
    """Given every capability, then its input has no member for either."""
    for item in caller.get("/v1/capabilities")["data"]["items"]:
        assert not {"model", "vendor", "provider"} & set(item["input_schema"]["properties"])


@section("What the service does")
def test_a_run_is_routed_to_a_connection_of_the_callers(service: RawCaller) -> None:
    """Given two callers, then each one's run goes over the connection that it registered."""
    for _ in range(2):
        alone = service.sign_up()
        connection = alone.connect("anthropic")
        run = alone.run("llm.generate", {"objective": "Tea"})
        assert run["data"]["connection_id"] == connection


@section("Versioning")
@pytest.mark.parametrize(
    "fields",
    pairwise(
        {
            "name": ["research.gather", "research.gather@1"],
            "version": [LEFT_OUT, "1"],
            "target": [LEFT_OUT, "capability"],
        }
    ),
    ids=lambda row: "-".join(row.values()),
)
def test_a_version_is_a_string_or_stands_in_the_name(caller: RawCaller, fields: Json) -> None:
    """Given the version in either place, or in none, then version 1 is what runs."""
    named = {key: value for key, value in fields.items() if value != LEFT_OUT}
    answer = caller.send("POST", "/v1/runs", {"input": {"topic": "Tea"}, **named})
    assert answer.is_success, answer.text
    assert answer.json()["data"]["capability"] == "research.gather@1"


@section("Versioning")
@section("Errors")
@pytest.mark.parametrize("version", ["2", "0", "1.0", "01", "latest"])
def test_an_unsupported_version_is_not_found(caller: RawCaller, version: str) -> None:
    """Given a version that there is not, then a run of it is `NOT_FOUND`."""
    body = build_run_body("research.gather", {"topic": "Tea"}, version=version)
    assert caller.send("POST", "/v1/runs", body).json()["error"]["code"] == "NOT_FOUND"


@section("Events")
def test_results_are_obtained_by_polling_alone(caller: RawCaller) -> None:
    """Given polls and nothing else, then each state read is one on the way to the end."""
    made = caller.create("/v1/runs", build_run_body("llm.generate", SHAPES["llm.generate"]))
    seen = [made["status"]]
    while seen[-1] != "completed":
        seen.append(caller.get(f"/v1/runs/{made['id']}")["status"])
    assert re.fullmatch(r"(queued )*(running )*(completed )", " ".join([*seen, ""]))


@section("Errors")
@section("Authentication")
@pytest.mark.parametrize("name", ["llm.generate", "speech.generate", "image.generate"])
def test_without_a_connection_credentials_are_missing(stranger: RawCaller, name: str) -> None:
    """Given no matching connection, then 400 `CREDENTIALS_MISSING`, and nothing is kept."""
    answer = stranger.send("POST", "/v1/runs", build_run_body(name, SHAPES[name]))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "CREDENTIALS_MISSING")
    assert any(provider in answer.text for provider in NAMES.values())
    assert stranger.get("/v1/runs")["data"]["items"] == []
