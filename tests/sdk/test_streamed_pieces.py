"""Streams of tool calls and reasoning from the sandbox, read by the SDKs' own helpers."""

import json
from typing import Any

import pytest

from tests.sdk.conftest import skip_without
from tests.sdk.test_conversations import ARGUMENTS, QUESTION
from toolkit.sandbox import SANDBOX_KEYS
from toolkit.sandbox.vendor_paths import ACCESS_KEY, SIGNING_KEY

pytestmark = skip_without("anthropic", "boto3", "google.genai", "openai")

THOUGHT = "Keep to the form of the request, and say what matters."
ROME = {"city": "Rome"}


def test_openai_helper_reads_a_tool_call(cloud_url: str) -> None:
    """Given a stream with a tool call, then the SDK's helper has its pieces and its whole."""
    from openai import OpenAI

    client = OpenAI(base_url=f"{cloud_url}/openai/v1", api_key=SANDBOX_KEYS["OPENAI_API_KEY"])
    function = {"name": "weather", "description": "x", "parameters": ARGUMENTS}
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    tools: list[Any] = [{"type": "function", "function": function}]
    with client.chat.completions.stream(
        model="gpt-6-luna", messages=messages, tools=tools, reasoning_effort="none"
    ) as stream:
        pieces = [
            event.arguments_delta
            for event in stream
            if event.type == "tool_calls.function.arguments.delta"
        ]
        message = stream.get_final_completion().choices[0].message
    assert message.tool_calls is not None
    assert len(pieces) > 1
    assert "".join(pieces) == message.tool_calls[0].function.arguments
    assert json.loads("".join(pieces)) == ROME


@pytest.mark.parametrize("uses_tool", [True, False], ids=["tool", "text"])
def test_anthropic_helper_reads_all_kinds(cloud_url: str, uses_tool: bool) -> None:
    """Given a stream with thoughts, then the SDK's helper has the pieces of each kind."""
    from anthropic import Anthropic

    client = Anthropic(
        base_url=f"{cloud_url}/anthropic",
        api_key=SANDBOX_KEYS["ANTHROPIC_API_KEY"],
        default_headers={"anthropic-version": "2026-10-21"},
    )
    tool: Any = {"name": "weather", "description": "x", "input_schema": ARGUMENTS}
    pieces = {"thinking": "", "input_json": "", "text": ""}
    with client.messages.stream(
        model="claude-haiku-5-5",
        max_tokens=2_000,
        thinking={"type": "adaptive"},
        messages=[{"role": "user", "content": QUESTION}],
        tools=[tool] if uses_tool else [],
    ) as stream:
        for event in stream:
            if event.type == "thinking":
                pieces["thinking"] += event.thinking
            elif event.type == "input_json":
                pieces["input_json"] += event.partial_json
            elif event.type == "text":
                pieces["text"] += event.text
        message = stream.get_final_message()
    thinking, answer = message.content
    assert thinking.type == "thinking"
    assert pieces["thinking"] == thinking.thinking == THOUGHT
    if uses_tool:
        assert answer.type == "tool_use"
        assert json.loads(pieces["input_json"]) == answer.input == ROME
    else:
        assert answer.type == "text"
        assert pieces["text"] == answer.text != ""


@pytest.mark.parametrize("uses_tool", [True, False], ids=["tool", "text"])
def test_google_sdk_reads_all_kinds(cloud_url: str, uses_tool: bool) -> None:
    """Given a stream with thoughts, then the SDK has parts of each kind."""
    from google import genai
    from google.genai import types

    options = types.HttpOptions(base_url=f"{cloud_url}/google", api_version="v1beta")
    client = genai.Client(api_key=SANDBOX_KEYS["GEMINI_API_KEY"], http_options=options)
    declared = types.FunctionDeclaration(name="weather", parameters_json_schema=ARGUMENTS)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declared])] if uses_tool else None,
        thinking_config=types.ThinkingConfig(thinking_budget=1_024, include_thoughts=True),
    )
    parts = [
        part
        for chunk in client.models.generate_content_stream(
            model="gemini-3.8-flash", contents=QUESTION, config=config
        )
        for candidate in chunk.candidates or ()
        for part in (candidate.content.parts if candidate.content else None) or ()
    ]
    assert "".join(part.text or "" for part in parts if part.thought) == THOUGHT
    calls = [part.function_call for part in parts if part.function_call]
    assert [call.args for call in calls] == ([ROME] if uses_tool else [])
    assert any(part.text and not part.thought for part in parts) is not uses_tool


@pytest.mark.parametrize("uses_tool", [True, False], ids=["tool", "text"])
def test_boto3_reads_all_kinds(cloud_url: str, uses_tool: bool) -> None:
    """Given a Converse stream with reasoning, then boto3 has the deltas of each kind."""
    import boto3

    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=f"{cloud_url}/aws",
        region_name="us-east-1",
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SIGNING_KEY,
    )
    spec = {"name": "weather", "description": "x", "inputSchema": {"json": ARGUMENTS}}
    tools = {"toolConfig": {"tools": [{"toolSpec": spec}]}} if uses_tool else {}
    effort = {"type": "enabled", "maxReasoningEffort": "low"}
    answer = client.converse_stream(
        modelId="us.amazon.nova-2-lite-v1:0",
        messages=[{"role": "user", "content": [{"text": QUESTION}]}],
        additionalModelRequestFields={"reasoningConfig": effort},
        **tools,
    )
    pieces = {"reasoningContent": "", "toolUse": "", "text": ""}
    names = []
    for event in answer["stream"]:
        names.append(event.get("contentBlockStart", {}).get("start", {}).get("toolUse"))
        for kind, piece in event.get("contentBlockDelta", {}).get("delta", {}).items():
            member = {"reasoningContent": "text", "toolUse": "input"}.get(kind)
            pieces[kind] += piece if member is None else piece[member]
    assert pieces["reasoningContent"] == THOUGHT
    if uses_tool:
        assert [use["name"] for use in names if use] == ["weather"]
        assert json.loads(pieces["toolUse"]) == ROME
    else:
        assert pieces["text"]
