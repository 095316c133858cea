"""The providers that are rows of `compatible.toml`: their dialects of OpenAI's wire."""

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.vendors.conftest import TEXT, VENDORS, VendorDrive, flow, ok
from tests.vendors.test_chat import chat
from tests.vendors.test_streams import sse
from toolkit import Client
from toolkit.assembly import list_compatible_vendors
from toolkit.contract.errors import ErrorCode
from toolkit.engine import Registry
from toolkit.plugins import EmbedRequest, Operation, ProviderError, TextRequest
from toolkit.plugins.bounds import OUTPUT_MARGIN
from toolkit.plugins.conversation import Tool, Turn
from toolkit.plugins.streaming import WholeAnswer
from toolkit.sandbox import Faults, create_app
from toolkit.settings import Settings
from toolkit.vendors._chat_stream import ChatStreamReader

CLOUDS = ("mistral", "groq", "openrouter", "deepseek", "xai", "together")
LOCAL = {"ollama": "http://localhost:11434/v1", "vllm": "http://localhost:8000/v1"}
SEEDED = replace(TEXT, seed=7, stop=("\n\n",), top_p=0.9)
LEVELS = ("none", "low", "medium", "high")


def ask(drive: VendorDrive, vendor: str, operation: Operation[Any], body: object = None) -> Any:
    """Have a vendor's flow answer an operation, in the vendor's own dialect."""
    declared = VENDORS[vendor]
    changes = {"vendor": vendor, "dialect": declared.dialect}
    return drive(flow(vendor, operation, **changes), ok(body or chat()))


def test_providers_of_data_follow_the_contract() -> None:
    """Given the catalogue, then the contract's seven come first, and the others have no label."""
    labels = [vendor.label for vendor in VENDORS.values()]
    assert None not in labels[:7]
    assert set(labels[7:]) == {None}
    for id in (*CLOUDS, *LOCAL):
        vendor = VENDORS[id]
        assert vendor.variable == f"{id.upper()}_API_KEY"
        assert vendor.is_local == (id in LOCAL)
        assert vendor.base_urls["api"].startswith("http://" if id in LOCAL else "https://")
        assert {o.kind for o in vendor.operations} == {model.kind for model in vendor.models}
        assert all(model.prices and model.source for model in vendor.models)
        assert all(date.fromisoformat(model.as_of).year >= 2026 for model in vendor.models)


@pytest.mark.parametrize(
    ("vendor", "sent", "unsent"),
    [
        (
            "mistral",
            {"max_tokens": 64, "random_seed": 7, "stop": ["\n\n"], "top_p": 0.9},
            {"max_completion_tokens", "seed", "stream_options", "service_tier"},
        ),
        ("groq", {"max_completion_tokens": 64, "seed": 7}, {"service_tier"}),
        ("deepseek", {"max_tokens": 64, "thinking": {"type": "disabled"}}, {"reasoning_effort"}),
        ("xai", {"max_completion_tokens": 64, "seed": 7}, {"prompt_cache_options"}),
        ("together", {"max_tokens": 64, "seed": 7}, {"max_completion_tokens"}),
        ("ollama", {"max_tokens": 64, "seed": 7}, {"max_completion_tokens"}),
        ("vllm", {"max_completion_tokens": 64, "max_tokens": 64, "seed": 7}, set()),
    ],
)
def test_sends_the_fields_by_their_own_names(
    drive: VendorDrive, vendor: str, sent: dict[str, Any], unsent: set[str]
) -> None:
    """Given a vendor's names of fields, then the request has these names alone."""
    model = "llama3.2" if vendor in LOCAL else VENDORS[vendor].models[0].id
    declared = VENDORS[vendor]
    drive(flow(vendor, SEEDED, vendor=vendor, dialect=declared.dialect, model=model), ok(chat()))
    body = drive.body()
    assert {name: body.get(name) for name in sent} == sent
    assert not unsent & body.keys()


@pytest.mark.parametrize(
    ("vendor", "field", "levels"),
    [
        ("mistral", "reasoning_effort", ("none", "high", "high", "high")),
        ("groq", "reasoning_effort", ("low", "low", "medium", "high")),
        ("deepseek", "reasoning_effort", (None, "low", "high", "high")),
        ("xai", "reasoning_effort", LEVELS),
    ],
)
def test_sends_each_level_of_reasoning(
    drive: VendorDrive, vendor: str, field: str, levels: tuple[str | None, ...]
) -> None:
    """Given a level of reasoning, then the vendor is asked for the nearest level that it knows."""
    for level, own in zip(LEVELS, levels, strict=True):
        ask(drive, vendor, replace(TEXT, reasoning=level))
        assert drive.body().get(field) == own
        if vendor == "deepseek":
            toggle = "disabled" if level == "none" else "enabled"
            assert drive.body()["thinking"] == {"type": toggle}


@pytest.mark.parametrize(
    ("schema", "response_format"),
    [({"type": "object"}, {"type": "json_object"}), ({"type": "array"}, None)],
)
def test_asks_for_json_as_strictly_as_the_vendor_knows(
    drive: VendorDrive, schema: dict[str, Any], response_format: object
) -> None:
    """Given a vendor without schemas, then the schema is in the prompt, and an object is asked."""
    ask(drive, "deepseek", replace(TEXT, schema=schema), chat("[]"))
    assert drive.body().get("response_format") == response_format
    assert f'"type": "{schema["type"]}"' in drive.body()["messages"][-1]["content"]


def test_a_host_of_openrouter_costs_no_more_than_the_list() -> None:
    """Given a model of OpenRouter, then hosts above its list prices are excluded."""
    vendor = VENDORS["openrouter"]
    for model in vendor.models:
        preferences: Any = vendor.dialect.model_extra[model.id]["provider"]
        assert preferences["require_parameters"] is True
        limits = {name: Decimal(usd) / 1_000_000 for name, usd in preferences["max_price"].items()}
        assert limits == {
            "prompt": model.prices["input_tokens"],
            "completion": model.prices["output_tokens"],
        }


@pytest.mark.parametrize(
    ("vendor", "usage", "units", "usd"),
    [
        (
            "deepseek",
            {"prompt_tokens": 90, "completion_tokens": 6, "prompt_cache_hit_tokens": 64},
            {"input_tokens": 90.0, "output_tokens": 6.0, "cached_input_tokens": 64.0},
            None,
        ),
        (
            "xai",
            {
                "prompt_tokens": 37,
                "completion_tokens": 530,
                "total_tokens": 800,
                "completion_tokens_details": {"reasoning_tokens": 233},
                "cost_in_usd_ticks": 19_537_500,
            },
            {"input_tokens": 37.0, "output_tokens": 763.0, "reasoning_tokens": 233.0},
            "0.00195375",
        ),
        (
            "openrouter",
            {"prompt_tokens": 194, "completion_tokens": 2, "total_tokens": 196, "cost": 0.00014},
            {"input_tokens": 194.0, "output_tokens": 2.0},
            "0.00014",
        ),
        (
            "openrouter",
            {"prompt_tokens": 194, "completion_tokens": 2, "cost": 0.00001, "is_byok": True},
            {"input_tokens": 194.0, "output_tokens": 2.0},
            None,
        ),
        (
            "groq",
            {"prompt_tokens": 194, "completion_tokens": 2, "cost": 0.5},
            {"input_tokens": 194.0, "output_tokens": 2.0},
            None,
        ),
    ],
    ids=["cache of deepseek", "reasoning of xai", "cost", "cost of another account", "no cost"],
)
def test_reads_the_usage(
    drive: VendorDrive,
    vendor: str,
    usage: dict[str, Any],
    units: dict[str, float],
    usd: str | None,
) -> None:
    """Given a vendor's usage, then billed units and the reported cost are read from it."""
    cost = ask(drive, vendor, TEXT, chat(usage=usage)).cost
    assert cost.units == units
    assert cost.reported_usd == (None if usd is None else Decimal(usd))


@pytest.mark.parametrize("vendor", ["groq", "xai", "together", "openrouter"])
def test_cap_bounds_reasoning_if_the_vendor_says_so(vendor: str) -> None:
    """Given a model that reasons, then its bound is the cap, or else its whole output limit."""
    declared = VENDORS[vendor]
    model = next(model for model in declared.models if model.reasons)
    bound = declared.bounds[TextRequest].units(TEXT, model)
    assert bound is not None
    cap = TEXT.max_tokens + OUTPUT_MARGIN
    assert bound["output_tokens"] == (model.output_limit if vendor == "openrouter" else cap)


@pytest.mark.parametrize(
    ("hour", "tier"), [(0, "off_peak"), (1, None), (3, None), (4, "off_peak"), (23, "off_peak")]
)
def test_bills_the_hours_outside_the_peak(drive: VendorDrive, hour: int, tier: str | None) -> None:
    """Given the hour of an answer of DeepSeek, then its tier is that of the hour."""
    body = {**chat(), "created": 1_795_132_800 + hour * 3_600 + 1_800}
    assert ask(drive, "deepseek", TEXT, body).tier == tier


THOUGHTS = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "The moon "}]},
    {"type": "thinking", "thinking": [{"type": "text", "text": "pulls."}]},
    {"type": "text", "text": "Because of the moon."},
]


def test_reads_thoughts_among_the_content(drive: VendorDrive) -> None:
    """Given Mistral's parts of thoughts and text, then reasoning and text are apart."""
    reply = ask(drive, "mistral", replace(TEXT, reasoning="high"), chat(THOUGHTS))
    assert (reply.text, reply.reasoning) == ("Because of the moon.", "The moon pulls.")


def test_reads_thoughts_among_streamed_content() -> None:
    """Given the same parts in a stream, then the text is shown and the whole answer has both."""
    reader = ChatStreamReader()
    deltas = [{"choices": [{"index": 0, "delta": {"content": [part]}}]} for part in THOUGHTS]
    end = {"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}]}
    pieces = [(piece.kind, piece.text) for piece in reader.read(sse(*deltas, end))]
    thoughts = [("reasoning", "The moon"), ("reasoning", " pulls.")]
    assert pieces == [*thoughts, ("text", "Because of the moon.")]
    whole = reader.assemble()
    assert isinstance(whole, WholeAnswer)
    assert b'"reasoning_content": "The moon pulls."' in whole.body


@pytest.mark.parametrize("kind", ["model_length", "length"])
def test_a_full_context_ends_an_answer(drive: VendorDrive, kind: str) -> None:
    """Given an answer that Mistral cut off, then its ending is `length`."""
    assert ask(drive, "mistral", TEXT, chat("Because", kind)).finish == "length"


def test_embeds_as_numbers_in_small_requests(drive: VendorDrive) -> None:
    """Given a vendor that answers with numbers alone, then a request has few texts."""
    rows = [{"index": n, "embedding": [0.5, 1.0]} for n in range(24)]
    usage = {"prompt_tokens": 48, "total_tokens": 48}
    body = {"data": rows, "model": "bge", "usage": usage}
    reply = ask(drive, "together", EmbedRequest(texts=("tide",) * 96), body)
    assert len(reply.vectors) == 24 * 2 * 4
    assert drive.body().keys() == {"model", "input"}


def test_a_local_server_without_models_is_refused(drive: VendorDrive) -> None:
    """Given a server that lists no model, then the error says so."""
    with pytest.raises(ProviderError, match="serves no model") as caught:
        ask(drive, "ollama", TEXT, {"object": "list", "data": []})
    assert caught.value.code is ErrorCode.PROVIDER_REJECTED


CALLED = [
    {"role": "user", "content": "What time is it?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "Noon."},
]


@pytest.mark.parametrize(
    ("path", "fields", "status", "answer"),
    [
        ("mistral/v1", {"model": "mistral-small-2603", "seed": 7}, 422, None),
        ("mistral/v1", {"model": "mistral-small-2603", "random_seed": 7}, 200, None),
        ("mistral/v1", {"model": "mistral-small-2603", "max_tokens": "x"}, 400, None),
        (
            "openrouter/api/v1",
            {"model": "openai/gpt-4.1-mini", "provider": {"require_parameters": True}},
            200,
            "Sandbox",
        ),
        ("deepseek", {"model": "deepseek-flash", "messages": CALLED}, 400, None),
    ],
    ids=["another name", "own name", "wrong type", "host", "no reasoning"],
)
async def test_sandbox_knows_the_dialect(
    path: str, fields: dict[str, Any], status: int, answer: str | None
) -> None:
    """Given fields by the vendor's names, then the sandbox answers in the vendor's dialect."""
    simulated = {vendor.id: vendor for vendor in list_compatible_vendors(Registry.load())}
    app = create_app(compatible=list(simulated.values()))
    headers = {"Authorization": f"Bearer {simulated[path.partition('/')[0]].key}"}
    body = {"messages": [{"role": "user", "content": "Tides"}], **fields}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), headers=headers) as client:
        response = await client.post(f"http://sandbox/{path}/chat/completions", json=body)
    assert response.status_code == status, response.text
    assert response.json().get("provider") == answer


@pytest.mark.parametrize("provider", CLOUDS)
def test_sandbox_serves_a_provider_of_data(tmp_path: Path, provider: str) -> None:
    """Given the sandbox, then the provider answers, is billed by its prices and can fail."""
    faults = Faults()
    with Client.local(tmp_path, sandbox=True, faults=faults, registry=Registry.load()) as client:
        faults.fail(provider, status=401, times=1)
        objective = {"objective": "A line on tides"}
        refused = client.runs.create("llm.generate", objective, provider=provider)
        message = f"{provider} did not accept"
        assert refused.wait(check=False).record.error.message.startswith(message)
        bounded = client.runs.create(
            "llm.generate", objective, provider=provider, max_cost_usd=2, cache=False
        ).wait()
        assert (bounded.provider, bounded.cost_usd > 0) == (provider, True)
        if VENDORS[provider].find_default_model("embedding"):
            vectors = client.runs.create("embed.generate", {"texts": ["tide"]}, provider=provider)
            assert vectors.wait().output["dimensions"] == 1_024
    assert {call.vendor for call in faults.calls} == {provider}


@pytest.mark.parametrize("provider", LOCAL)
def test_connects_a_local_server_without_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    """Given no key, then a local server is connected, lists its models and costs nothing."""
    monkeypatch.delenv(VENDORS[provider].variable, raising=False)
    faults = Faults()
    with Client.local(tmp_path, sandbox=True, faults=faults, registry=Registry.load()) as client:
        assert provider not in {connection.provider for connection in client.connections.list()}
        (connection,) = client.connections.connect(provider)
        tried = connection.test().record
        assert (tried.resolved, tried.accepted, tried.next_step) == (True, True, "")
        first, second, embedder = tried.models
        for pin, model in ((provider, first), (f"{provider}/{second}", second)):
            run = client.runs.create(
                "llm.generate",
                {"objective": "A line on tides"},
                provider=pin,
                max_cost_usd=0.000001,
            ).wait()
            assert (run.record.model, run.cost_usd) == (model, 0)
        for pin in (provider, f"{provider}/{embedder}"):
            vectors = client.runs.create("embed.generate", {"texts": ["tide"]}, provider=pin)
            assert vectors.wait().record.model == embedder


CHAT_MODELS = [{"id": "llama3.2"}, {"id": "qwen3.5"}]
LLAMA_CPP = {"data": CHAT_MODELS, "models": [{"name": "qwen3.5", "capabilities": ["embedding"]}]}


@pytest.mark.parametrize(
    ("listing", "model"),
    [
        ({"data": [*CHAT_MODELS, {"id": "bge-m3", "type": "embeddings"}]}, "bge-m3"),
        (LLAMA_CPP, "qwen3.5"),
        ({"data": [{"id": "bge-m3"}]}, "bge-m3"),
    ],
    ids=["type", "capabilities", "only one"],
)
def test_embeds_by_the_model_that_a_server_lists_for_it(
    drive: VendorDrive, listing: dict[str, Any], model: str
) -> None:
    """Given a server's list, then vectors come from the model that it calls an embedding model."""
    body = {"data": [{"embedding": [0.5]}], "usage": {"prompt_tokens": 1}}
    request = flow("vllm", EmbedRequest(texts=("tide",)), vendor="vllm")
    drive(request, ok(listing), ok(body))
    assert drive.body()["model"] == model


def test_a_list_that_does_not_say_what_embeds_is_explained(drive: VendorDrive) -> None:
    """Given models of unknown kinds, then the error says how to name one for vectors."""
    listing = {"data": [*CHAT_MODELS, {"id": "nomic-embed-text"}]}
    request = flow("ollama", EmbedRequest(texts=("tide",)), vendor="ollama")
    with pytest.raises(ProviderError, match='provider="ollama/nomic-embed-text"') as caught:
        drive(request, ok(listing))
    assert caught.value.code is ErrorCode.PROVIDER_REJECTED


def test_sends_reasoning_back_with_the_answer_of_a_tool(drive: VendorDrive) -> None:
    """Given DeepSeek's call of a tool, then its reasoning goes back in all later requests."""
    asked = {
        "role": "assistant",
        "content": "",
        "reasoning_content": "The clock knows.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
        ],
    }
    body = {**chat(), "choices": [{"message": asked, "finish_reason": "tool_calls"}]}
    clock = Tool("clock", "the time", {"type": "object", "properties": {}})
    first = replace(TEXT, tools=(clock,), reasoning="low")
    reply = ask(drive, "deepseek", first, body)
    turns = (
        Turn("user", "What time is it?"),
        Turn("assistant", tool_calls=reply.tool_calls),
        Turn("tool", "Noon.", tool_call_id="c1"),
    )
    second = replace(first, turns=turns)
    ask(drive, "deepseek", second)
    sent = drive.body()["messages"][2]
    assert sent["reasoning_content"] == "The clock knows."
    assert "The clock knows." in " ".join(second.list_texts())  # and the bound covers it
    # Other vendors do not get it: not in a member, not as a signature of their own.
    ask(drive, "groq", second)
    assert "reasoning_content" not in drive.body()["messages"][2]
    answer = {"candidates": [{"content": {"parts": [{"text": "Noon."}]}, "finishReason": "STOP"}]}
    drive(flow("google", second), ok(answer))
    assert "The clock knows." not in json.dumps(drive.body())


@pytest.mark.parametrize(
    ("provider", "model"), [("ollama", "qwen3.5"), ("deepseek", "deepseek-flash")]
)
def test_operator_prices_hold_at_every_hour(tmp_path: Path, provider: str, model: str) -> None:
    """Given a price in the settings, then calls cost it: of a local server, and off the peak."""
    vendors = {provider: {"prices": {model: {"input_tokens": 1, "output_tokens": 2}}}}
    settings = Settings(data_dir=tmp_path, sandbox=True, vendors=vendors)
    with Client.local(settings=settings) as client:
        client.connections.connect(provider)
        for objective in ("A line on tides", "A line on salt", "A line on mills"):
            run = client.runs.create(
                "llm.generate", {"objective": objective}, provider=f"{provider}/{model}"
            ).wait()
            usage = run.record.usage
            cost = (usage["input_tokens"] + 2 * usage["output_tokens"]) / 1e6
            assert run.cost_usd == pytest.approx(cost)


def test_telemetry_has_the_standard_names() -> None:
    """Given OpenTelemetry's names of providers, then those that differ from our ids are used."""
    names = {id: VENDORS[id].telemetry_name for id in CLOUDS if VENDORS[id].telemetry_name}
    assert names == {"mistral": "mistral_ai", "xai": "x_ai"}


def test_a_pin_may_have_slashes(tmp_path: Path) -> None:
    """Given a model whose name has a slash, then the pin's provider ends at the first."""
    pin = "openrouter/mistralai/mistral-small-2603"
    with Client.local(tmp_path, sandbox=True, registry=Registry.load()) as client:
        route = client.route("llm.generate", {"objective": "A line on tides"}, provider=pin)
    assert (route.provider, route.model) == ("openrouter", "mistralai/mistral-small-2603")
