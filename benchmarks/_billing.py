"""Fake vendors that bill by the tokens a real tokenizer counts, and keep a ledger.

They share no code with the engine or the sandbox: the prices are copied from the vendors' pages.
"""

import asyncio
import base64
import json
import math
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import httpx

MILLION = Decimal(1_000_000)
# Maps the vendors' names of a service tier to ours.
_TIERS = {
    "default": "standard",
    "standard": "standard",
    "standard_only": "standard",
    "flex": "flex",
}
# The largest system prompt that a vendor adds for tools, in tokens (Claude's guide to tool use).
_TOOL_PROMPTS = {"anthropic": 804, "aws": 804}
_SCHEMA_MEMBERS = ("tools", "response_format", "output_config", "toolConfig", "outputConfig")


@dataclass(frozen=True, slots=True)
class Tariff:
    """Prices in US dollars per million tokens, which may rise with the length of the input.

    Attributes:
        input: price of input tokens.
        output: price of output tokens.
        above: number of input tokens from which the `dearer` prices apply.
        dearer: prices of input and output tokens of a long request.
        write: price of input tokens written to the prompt cache, as a share of `input`.
        tiers: price of each other service tier, as a share of the standard tier's.
    """

    input: str
    output: str
    above: int = 10**9
    dearer: tuple[str, str] = ("0", "0")
    write: str = "1"
    tiers: Mapping[str, str] = field(default_factory=dict)

    def usd(self, bill: "Bill") -> Decimal:
        """Return the bill of one request."""
        rates = self.dearer if bill.input > self.above else (self.input, self.output)
        counted = bill.input + bill.cache_writes * (Decimal(self.write) - 1)
        total = Decimal(rates[0]) * counted + Decimal(rates[1]) * bill.output
        return total * Decimal(self.tiers.get(bill.tier, "1")) / MILLION


@dataclass(frozen=True, slots=True)
class Bill:
    """The tokens of one request: input, output, and input written to the cache; and its tier."""

    input: int
    output: int
    cache_writes: int
    tier: str


TARIFFS = {
    "openai": Tariff(
        "0.10", "0.50", 272_000, ("0.20", "0.75"), "1.25", {"priority": "2", "flex": "0.5"}
    ),
    "anthropic": Tariff("0.10", "0.50", 100_000, ("0.50", "2.50"), "1.25", {"priority": "1.5"}),
    "google": Tariff("0.75", "3.75", tiers={"priority": "1.8", "flex": "0.5"}),
    "minimax": Tariff("0.30", "1.20", 512_000, ("0.60", "2.40")),
    "aws": Tariff("0.33", "2.75"),  # Nova 2 Lite in the United States
}
# Prices of other models, by a part of the path of their requests.
_OTHER_TARIFFS = {"gpt-oss-120b": Tariff("0.15", "0.60", tiers={"priority": "1.75", "flex": "0.5"})}
_HOSTS = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "google",
    "api.minimax.io": "minimax",
    "bedrock-runtime.us-east-1.amazonaws.com": "aws",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """The way a vendor bills, and whether its response arrives.

    Attributes:
        template: tokens that the vendor adds around a prompt.
        share: share of the output limit that a response uses.
        stop: tokens billed beyond the output limit.
        thoughts: tokens of reasoning that a model tries to spend. At Google they come on top of the
            output limit, up to the thinking budget, as its guide says; elsewhere within the limit.
        overthinks: True if Google's models exceed the thinking budget, as observed, but stay within
            the output limit.
        writes: when OpenAI's server writes a prompt to its cache: `implicit` unless a request asks
            for the mode `explicit`, `always` or `never`.
        project_tier: tier of requests that name none.
        refuses: names of fields that are rejected with 400; nothing is billed then.
        outcome: `answered`; `lost`: the response never arrives; `garbled`: it is not JSON;
            `silent`: it reports no usage.
    """

    template: int = 7
    share: float = 0.2
    stop: int = 0
    thoughts: int = 0
    overthinks: bool = False
    writes: str = "implicit"
    project_tier: str = "standard"
    refuses: tuple[str, ...] = ()
    outcome: str = "answered"


RULES: Mapping[str, Rule] = {
    "plain": Rule(),
    "long template": Rule(template=240),
    "to the cap": Rule(share=1.0, stop=1),
    "thoughts": Rule(share=1.0, thoughts=4_000),
    "thoughts past the budget": Rule(thoughts=100_000, overthinks=True),
    "cache writes": Rule(share=1.0, stop=1, writes="always"),
    "cache options refused": Rule(share=1.0, stop=1, refuses=("prompt_cache_options",)),
    "priority project": Rule(share=1.0, stop=1, project_tier="priority"),
    "flex project": Rule(share=1.0, stop=1, project_tier="flex", writes="always"),
    "answer lost": Rule(share=1.0, outcome="lost"),
    "answer garbled": Rule(share=1.0, outcome="garbled"),
    "usage not reported": Rule(share=1.0, outcome="silent"),
}


@dataclass(slots=True)
class Billing(httpx.AsyncBaseTransport):
    """A transport that simulates the vendors' hosts.

    Attributes:
        count: function that counts the tokens of a text.
        rule: the way each vendor bills.
        every: number of requests of which one has the rule's `outcome`.
        holds: True if one in `every` responses is held until the caller leaves.
        ledger: amount billed for each request, in US dollars.
        held: event that is set once a response is held.
    """

    count: Callable[[str], int]
    rule: Rule
    every: int = 3
    holds: bool = False
    ledger: list[Decimal] = field(default_factory=list)
    held: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Bill a request, and answer it by the rule."""
        vendor = _HOSTS[request.url.host]
        body = json.loads(await request.aread())
        refused = [name for name in self.rule.refuses if name in body]
        if refused:
            error = {"message": f"Unknown parameter: '{refused[0]}'.", "param": refused[0]}
            return httpx.Response(400, json={"error": error}, request=request)
        bill = self._measure(vendor, body)
        path = request.url.path
        others = (tariff for part, tariff in _OTHER_TARIFFS.items() if part in path)
        self.ledger.append(next(others, TARIFFS[vendor]).usd(bill))
        is_nth = len(self.ledger) % self.every == 0
        outcome = self.rule.outcome if is_nth else "answered"
        if self.rule.outcome == "silent":
            outcome = "silent"
        if self.holds and is_nth:
            self.held.set()
            await asyncio.Event().wait()  # until the caller leaves
        if outcome == "lost":
            raise httpx.ReadError("the connection was lost", request=request)
        if outcome == "garbled":
            return httpx.Response(200, content=b"<html>", request=request)
        headers = {"x-gemini-service-tier": bill.tier} if vendor == "google" else {}
        text = '{"title": "So it is."}' if _asks_json(body) else "So it is."
        answer = _answer(vendor, None if outcome == "silent" else bill, text)
        return httpx.Response(200, json=answer, headers=headers, request=request)

    def _measure(self, vendor: str, body: Any) -> Bill:
        input_tokens = sum(map(self.count, _texts(body))) + self.rule.template
        input_tokens += sum(_count_picture(vendor, data) for data in _pictures(body))
        if "tools" in body or "toolConfig" in body:
            input_tokens += _TOOL_PROMPTS.get(vendor, 0)
        cap = _cap(body)
        output_tokens = max(1, int(cap * self.rule.share))
        if vendor == "google" and not self.rule.overthinks:
            config = body["generationConfig"].get("thinkingConfig", {})
            budget = config.get("thinkingBudget", self.rule.thoughts)
            output_tokens += min(self.rule.thoughts, budget)
        else:
            output_tokens = min(output_tokens + self.rule.thoughts, cap)
        mode = body.get("prompt_cache_options", {}).get("mode", "implicit")
        writes = self.rule.writes == "always" or (self.rule.writes, mode) == ("implicit",) * 2
        cache_writes = input_tokens if vendor == "openai" and writes else 0
        tier_name = body.get("service_tier", body.get("serviceTier", "auto"))
        tier_name = tier_name["type"] if isinstance(tier_name, dict) else tier_name
        tier = self.rule.project_tier if tier_name == "auto" else _TIERS[tier_name]
        return Bill(input_tokens, output_tokens + self.rule.stop, cache_writes, tier)


def _walk(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield every string in a value, with the name of its member."""
    if isinstance(value, dict):
        for member, inner in value.items():
            yield from _walk(inner, member)
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner, name)
    elif isinstance(value, str):
        yield name, value


def _messages(body: Any) -> Iterator[tuple[str, str]]:
    yield from _walk(body.get("system"), "text")
    for name in ("messages", "contents", "systemInstruction"):
        yield from _walk(body.get(name))


def _texts(body: Any) -> list[str]:
    """Return every text of a request, and its schemas and tools as JSON."""
    texts = [text for name, text in _messages(body) if name in ("text", "content")]
    texts += [
        json.dumps(body[name], ensure_ascii=False) for name in _SCHEMA_MEMBERS if name in body
    ]
    schema = body.get("generationConfig", {}).get("responseJsonSchema")
    return texts + ([json.dumps(schema, ensure_ascii=False)] if schema else [])


def _pictures(body: Any) -> list[bytes]:
    """Return every picture of a request."""
    found = (text for name, text in _messages(body) if name in ("url", "data", "bytes"))
    return [base64.b64decode(text.rpartition(",")[2]) for text in found]


def _count_picture(vendor: str, data: bytes) -> int:
    """Count the tokens of a PNG by the vendor's guide to vision."""
    width, height = struct.unpack(">II", data[16:24])
    if vendor == "openai":  # within 2,048 pixels, and with the largest factor of a listed model
        scale = min(1.0, 2_048 / max(width, height))
        patches = math.ceil(width * scale / 32) * math.ceil(height * scale / 32)
        return math.ceil(min(patches, 2_500) * 1.62)
    if vendor == "anthropic":
        scale = min(1.0, 2_576 / max(width, height))
        patches = math.ceil(width * scale / 28) * math.ceil(height * scale / 28)
        return min(patches, 4_784)
    return 1_120 if vendor == "google" else 2_600  # Nova: the largest of the guide's examples


def _asks_json(body: Any) -> bool:
    """Check whether a request asks for JSON by a schema, in a field or in its prompt."""
    fields = (body.get("response_format"), body.get("outputConfig"))
    config = body.get("generationConfig", {}).get("responseJsonSchema")
    output = body.get("output_config", {}).get("format")
    in_prompt = any("matching this JSON schema" in text for _, text in _messages(body))
    return any((*fields, config, output, in_prompt))


def _cap(body: Any) -> int:
    config = body.get("generationConfig", {})
    names = ("max_completion_tokens", "max_tokens")
    capped = config.get("maxOutputTokens") or body.get("inferenceConfig", {}).get("maxTokens")
    return int(capped or next(body[n] for n in names if n in body))


def _answer(vendor: str, bill: Bill | None, text: str) -> dict[str, Any]:
    if vendor == "aws":
        usage: dict[str, Any] = {}
        if bill is not None:
            usage = {"inputTokens": bill.input, "outputTokens": bill.output}
        reply = {"role": "assistant", "content": [{"text": text}]}
        served = {"type": {"standard": "default"}.get(bill.tier, bill.tier)} if bill else {}
        head = {"output": {"message": reply}, "stopReason": "end_turn", "serviceTier": served}
        return {**head, "usage": usage}
    if vendor == "anthropic":
        usage = {}
        if bill is not None:
            usage = {"input_tokens": bill.input, "output_tokens": bill.output}
            usage["service_tier"] = bill.tier
        content = [{"type": "text", "text": text}]
        return {"id": "m", "content": content, "stop_reason": "end_turn", "usage": usage}
    if vendor == "google":
        usage = {}
        if bill is not None:
            usage = {"promptTokenCount": bill.input, "candidatesTokenCount": bill.output}
        parts = {"parts": [{"text": text}]}
        candidates = [{"content": parts, "finishReason": "STOP"}]
        return {"candidates": candidates, "usageMetadata": usage}
    message = {"role": "assistant", "content": text}
    chat_head: dict[str, Any] = {"id": "c"}
    usage = {}
    if bill is not None:
        usage = {"prompt_tokens": bill.input, "completion_tokens": bill.output}
        usage["prompt_tokens_details"] = {"cache_write_tokens": bill.cache_writes}
        if vendor == "openai":
            chat_head["service_tier"] = {"standard": "default"}.get(bill.tier, bill.tier)
    return {**chat_head, "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
