"""Conversations, tools and pictures, judged by the types that the vendors' SDKs are made of.

The adapters' requests must fit the SDKs' parameters, and the sandbox's answers their models.
"""

import base64
import io
from itertools import pairwise
from typing import Any, get_type_hints

import httpx
import pytest
from PIL import Image
from pydantic import TypeAdapter

from tests.sdk.conftest import skip_without
from tests.sdk.published_schemas import Check, converse_output, events, of
from tests.sdk.test_requests import FULL, get_sent_body
from toolkit.plugins import EmbedRequest, TextRequest
from toolkit.plugins.conversation import Picture, Tool, ToolCall, Turn
from toolkit.sandbox import SANDBOX_KEYS

pytestmark = skip_without("anthropic", "boto3", "google.genai", "openai")

ARGUMENTS: dict[str, object] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
WEATHER = Tool("weather", "the weather of a city", ARGUMENTS)
CALL = ToolCall("call_1", "weather", {"city": "Rome"})
QUESTION = "What is the weather in Rome?"


def make_picture() -> bytes:
    """Make a small red picture."""
    stored = io.BytesIO()
    Image.new("RGB", (8, 8), (200, 40, 40)).save(stored, "PNG")
    return stored.getvalue()


PICTURE = base64.b64encode(make_picture()).decode()
CONVERSATION = TextRequest(
    turns=(
        Turn("user", "Look at this.", (Picture("image/png", make_picture()),)),
        Turn("assistant", "It is red."),
        Turn("user", QUESTION),
        Turn("assistant", "", tool_calls=(CALL,)),
        Turn("tool", "Sun.", tool_call_id="call_1"),
    ),
    system="Be brief.",
    max_tokens=50,
    tools=(WEATHER,),
    reasoning="low",
    stop=("END",),
)
FORCED = TextRequest(
    prompt=QUESTION, tools=(WEATHER,), tool_choice="required", named_tool="weather", top_p=0.5
)
EACH = pytest.mark.parametrize(
    "operation", [FULL, CONVERSATION, FORCED], ids=["text", "whole", "forced"]
)


@EACH
def test_openai_request(operation: TextRequest) -> None:
    """Given a conversation, then it fits the SDK's parameters of a chat completion."""
    from openai.types.chat import completion_create_params as params

    body = get_sent_body("openai", operation)
    kind = params.CompletionCreateParamsNonStreaming
    TypeAdapter(kind).validate_python(body)
    assert set(body) - {"prompt_cache_options"} <= set(get_type_hints(kind))
    if operation is CONVERSATION:
        assert body["max_completion_tokens"] == 50 + 1_024
        assert body["reasoning_effort"] == "low"


@EACH
def test_anthropic_request(operation: TextRequest) -> None:
    """Given a conversation, then it fits the SDK's parameters of a message."""
    from anthropic.types import MessageCreateParams

    body = get_sent_body("anthropic", operation)
    TypeAdapter(MessageCreateParams).validate_python(body)
    kinds = MessageCreateParams.__args__
    assert set(body) <= {name for kind in kinds for name in get_type_hints(kind)}
    roles = [message["role"] for message in body["messages"]]
    assert all(first != second for first, second in pairwise(roles))


@EACH
def test_google_request(operation: TextRequest) -> None:
    """Given a conversation, then its parts are the SDK's models, which take no other field."""
    from google.genai import types

    assert types.Content.model_config.get("extra") == "forbid"
    body = get_sent_body("google", operation)
    names = {"contents", "systemInstruction", "generationConfig", "serviceTier"}
    assert set(body) <= names | {"tools", "toolConfig"}
    assert body["serviceTier"] in list(types.ServiceTier)
    instructions = [body["systemInstruction"]] if "systemInstruction" in body else []
    for content in [*body["contents"], *instructions]:
        types.Content.model_validate(content)
    for tool in body.get("tools", []):
        types.Tool.model_validate(tool)
    types.ToolConfig.model_validate(body.get("toolConfig", {}))
    types.GenerationConfig.model_validate(body["generationConfig"])


@EACH
def test_aws_request(operation: TextRequest) -> None:
    """Given a conversation, then botocore's model of Converse takes it."""
    from botocore.session import Session
    from botocore.validate import ParamValidator

    model = Session().get_service_model("bedrock-runtime").operation_model("Converse")
    body = {**get_sent_body("aws", operation), "modelId": "amazon.nova-2-lite-v1:0"}
    report = ParamValidator().validate(body, model.input_shape)
    assert not report.has_errors(), report.generate_report()


def test_openai_embedding_request() -> None:
    """Given texts, then they fit the SDK's parameters of embeddings."""
    from openai.types import EmbeddingCreateParams

    body = get_sent_body("openai", EmbedRequest(texts=("a", "b"), dimensions=64))
    TypeAdapter(EmbeddingCreateParams).validate_python(body)
    assert set(body) <= set(get_type_hints(EmbeddingCreateParams))


def make_cases() -> dict[str, tuple[str, dict[str, Any], Check]]:
    """Make a request with tools, pictures or thoughts for each wire, and the type of its answer."""
    function = {"name": "weather", "description": "the weather", "parameters": ARGUMENTS}
    chat = {
        "model": "gpt-6-luna",
        "messages": [{"role": "user", "content": QUESTION}],
        "tools": [{"type": "function", "function": function}],
        "tool_choice": "required",
        "reasoning_effort": "none",  # chat completions have no tools with reasoning
    }
    message = {
        "model": "claude-haiku-5-5",
        "max_tokens": 2_000,
        "messages": [{"role": "user", "content": QUESTION}],
        "tools": [{"name": "weather", "input_schema": ARGUMENTS}],
        "tool_choice": {"type": "any"},
    }
    thinking = {**message, "thinking": {"type": "adaptive"}}
    del thinking["tool_choice"]
    content = {
        "contents": [{"role": "user", "parts": [{"text": QUESTION}]}],
        "tools": [
            {"functionDeclarations": [{"name": "weather", "parametersJsonSchema": ARGUMENTS}]}
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
    }
    spec = {"name": "weather", "description": "x", "inputSchema": {"json": ARGUMENTS}}
    converse = {
        "messages": [{"role": "user", "content": [{"text": QUESTION}]}],
        "toolConfig": {"tools": [{"toolSpec": spec}], "toolChoice": {"any": {}}},
    }
    openai, gemini = "/openai/v1/chat/completions", "/google/v1/models/gemini-3.8-flash"
    return {
        "openai": (openai, chat, of("openai.types.chat.ChatCompletion")),
        "openai stream": (
            openai,
            {**chat, "stream": True},
            events("openai.types.chat.ChatCompletionChunk"),
        ),
        "openai embeddings": (
            "/openai/v1/embeddings",
            {"model": "text-embedding-3-small", "input": ["a", "b"]},
            of("openai.types.CreateEmbeddingResponse"),
        ),
        "anthropic": ("/anthropic/v1/messages", message, of("anthropic.types.Message")),
        "anthropic stream": (
            "/anthropic/v1/messages",
            {**message, "stream": True},
            events("anthropic.types.RawMessageStreamEvent"),
        ),
        "anthropic thinking": (
            "/anthropic/v1/messages",
            {**thinking, "stream": True},
            events("anthropic.types.RawMessageStreamEvent"),
        ),
        "google": (
            f"{gemini}:generateContent",
            content,
            of("google.genai.types.GenerateContentResponse"),
        ),
        "google embeddings": (
            "/google/v1beta/models/gemini-embedding-001:embedContent",
            {"content": {"parts": [{"text": "a"}]}},
            of("google.genai.types.SingleEmbedContentResponse"),
        ),
        "aws": ("/aws/model/us.amazon.nova-2-lite-v1%3A0/converse", converse, converse_output),
    }


CASES = make_cases()


@pytest.mark.parametrize("name", CASES)
def test_an_answer_fits_the_sdk(cloud_url: str, name: str) -> None:
    """Given a request with tools, then the sandbox's answer is one of the SDK's types."""
    path, body, check = CASES[name]
    variables = {"google": "GEMINI_API_KEY", "aws": "AWS_BEARER_TOKEN_BEDROCK"}
    vendor = path.split("/")[1]
    key = SANDBOX_KEYS[variables.get(vendor, f"{vendor.upper()}_API_KEY")]
    headers = {
        "authorization": f"Bearer {key}",
        "x-api-key": key,
        "x-goog-api-key": key,
        "anthropic-version": "2026-10-21",
    }
    answer = httpx.post(cloud_url + path, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    check(answer)


def test_openai_round_trip(cloud_url: str) -> None:
    """Given the SDK, when it runs a tool and shows a picture, then the model answers to both."""
    from openai import OpenAI

    client = OpenAI(base_url=f"{cloud_url}/openai/v1", api_key=SANDBOX_KEYS["OPENAI_API_KEY"])
    tool: Any = {
        "type": "function",
        "function": {"name": "weather", "description": "x", "parameters": ARGUMENTS},
    }
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    offer: Any = {"model": "gpt-6-luna", "tools": [tool], "reasoning_effort": "none"}
    asked = client.chat.completions.create(messages=messages, **offer)
    message = asked.choices[0].message
    assert message.tool_calls is not None
    messages += [
        message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "Sun."},
    ]
    told = client.chat.completions.create(messages=messages, **offer)
    assert told.choices[0].message.content == "Sun."
    url = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
    shown: Any = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, url]}]
    seen = client.chat.completions.create(model="gpt-6-luna", messages=shown)
    assert "mostly red" in (seen.choices[0].message.content or "")
    embedded = client.embeddings.create(model="text-embedding-3-small", input=["a", "b"])
    assert [len(row.embedding) for row in embedded.data] == [1_536, 1_536]


def test_anthropic_round_trip(cloud_url: str) -> None:
    """Given the SDK, when it streams a tool's call, then its accumulated message has it."""
    from anthropic import Anthropic

    client = Anthropic(
        base_url=f"{cloud_url}/anthropic",
        api_key=SANDBOX_KEYS["ANTHROPIC_API_KEY"],
        default_headers={"anthropic-version": "2026-10-21"},
    )
    tool: Any = {"name": "weather", "description": "x", "input_schema": ARGUMENTS}
    with client.messages.stream(
        model="claude-haiku-5-5",
        max_tokens=200,
        messages=[{"role": "user", "content": QUESTION}],
        tools=[tool],
    ) as stream:
        message = stream.get_final_message()
    (block,) = [block for block in message.content if block.type == "tool_use"]
    assert (block.name, block.input) == ("weather", {"city": "Rome"})


def test_google_round_trip(cloud_url: str) -> None:
    """Given the SDK, when a function is declared, then the answer calls it, and texts embed."""
    from google import genai
    from google.genai import types

    options = types.HttpOptions(base_url=f"{cloud_url}/google", api_version="v1beta")
    client = genai.Client(api_key=SANDBOX_KEYS["GEMINI_API_KEY"], http_options=options)
    declared = types.FunctionDeclaration(name="weather", parameters_json_schema=ARGUMENTS)
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declared])])
    answer = client.models.generate_content(
        model="gemini-3.8-flash", contents=QUESTION, config=config
    )
    assert answer.function_calls is not None
    assert answer.function_calls[0].args == {"city": "Rome"}
    embedded = client.models.embed_content(model="gemini-embedding-001", contents=["a", "b"])
    assert embedded.embeddings is not None
    assert len(embedded.embeddings) == 2
