"""Vendors that bill what a real tokenizer counts, by rules of their own, and keep a ledger.

They share nothing with the engine or the sandbox: their prices stand here, as on their pages.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import httpx

MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class Tariff:
    """Dollars per million tokens in and out, and from which input length on they are others."""

    given: str
    made: str
    above: int = 10**9
    dearer: tuple[str, str] = ("0", "0")

    def usd(self, given: int, made: int) -> Decimal:
        """The bill of one request."""
        rates = self.dearer if given > self.above else (self.given, self.made)
        return (Decimal(rates[0]) * given + Decimal(rates[1]) * made) / MILLION


TARIFFS = {
    "openai": Tariff("0.10", "0.50", 272_000, ("0.20", "0.75")),
    "anthropic": Tariff("0.10", "0.50", 100_000, ("0.50", "2.50")),
    "google": Tariff("0.75", "3.75"),
    "minimax": Tariff("0.30", "1.20", 512_000, ("0.60", "2.40")),
}
_HOSTS = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "google",
    "api.minimax.io": "minimax",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """How a vendor bills, and whether its answer arrives.

    Attributes:
        template: tokens that it puts around what is sent.
        share: of the cap that is used up by an answer.
        stop: tokens that it counts beyond the cap.
        thoughts: tokens of reasoning beside the cap, at who says that they are counted beside it.
        outcome: `answered`; `lost`, where the answer never comes; `garbled`, where it is no JSON;
            `silent`, where it does not tell what was billed.
    """

    template: int = 7
    share: float = 0.2
    stop: int = 0
    thoughts: int = 0
    outcome: str = "answered"


RULES: Mapping[str, Rule] = {
    "plain": Rule(),
    "long template": Rule(template=240),
    "to the cap": Rule(share=1.0, stop=1),
    "thoughts": Rule(share=1.0, thoughts=4_000),
    "answer lost": Rule(share=1.0, outcome="lost"),
    "answer garbled": Rule(share=1.0, outcome="garbled"),
    "usage not told": Rule(share=1.0, outcome="silent"),
}


@dataclass(slots=True)
class Billing(httpx.AsyncBaseTransport):
    """The vendors' hosts, as something that a request is handed to.

    Attributes:
        count: the tokenizer.
        rule: how is billed.
        every: with an `outcome` of its own, only each so many requests have it.
        ledger: what each request was billed, in US dollars.
    """

    count: Callable[[str], int]
    rule: Rule
    every: int = 3
    ledger: list[Decimal] = field(default_factory=list)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Bill a request, and answer it as the rule has it."""
        vendor = _HOSTS[request.url.host]
        body = json.loads(await request.aread())
        given = sum(map(self.count, _texts(body))) + self.rule.template
        cap = _cap(body)
        made = max(1, int(cap * self.rule.share)) + self.rule.stop
        if vendor == "google":
            made += self.rule.thoughts
        self.ledger.append(TARIFFS[vendor].usd(given, made))
        outcome = self.rule.outcome if len(self.ledger) % self.every == 0 else "answered"
        if self.rule.outcome == "silent":
            outcome = "silent"
        if outcome == "lost":
            raise httpx.ReadError("the connection was lost", request=request)
        if outcome == "garbled":
            return httpx.Response(200, content=b"<html>", request=request)
        usage = None if outcome == "silent" else (given, made)
        return httpx.Response(200, json=_answer(vendor, usage), request=request)


def _texts(body: Any) -> list[str]:
    """Every text of a request, and its schema as it is spelled."""
    found: list[str] = []
    for message in body.get("messages", []):
        found.append(message["content"])
    found += [body["system"]] if isinstance(body.get("system"), str) else []
    for content in (*body.get("contents", []), body.get("systemInstruction") or {"parts": []}):
        found += [part["text"] for part in content["parts"]]
    for name in ("response_format", "output_config"):
        found += [json.dumps(body[name])] if name in body else []
    schema = body.get("generationConfig", {}).get("responseJsonSchema")
    return found + ([json.dumps(schema)] if schema else [])


def _cap(body: Any) -> int:
    config = body.get("generationConfig", {})
    names = ("max_completion_tokens", "max_tokens")
    return int(config.get("maxOutputTokens") or next(body[n] for n in names if n in body))


def _answer(vendor: str, usage: tuple[int, int] | None) -> dict[str, Any]:
    given, made = usage or (0, 0)
    if vendor == "anthropic":
        told = {"input_tokens": given, "output_tokens": made} if usage else {}
        content = [{"type": "text", "text": "So it is."}]
        return {"id": "m", "content": content, "stop_reason": "end_turn", "usage": told}
    if vendor == "google":
        told = {"promptTokenCount": given, "candidatesTokenCount": made} if usage else {}
        content = {"parts": [{"text": "So it is."}]}
        return {
            "candidates": [{"content": content, "finishReason": "STOP"}],
            "usageMetadata": told,
        }
    message = {"role": "assistant", "content": "So it is."}
    told = {"prompt_tokens": given, "completion_tokens": made} if usage else {}
    return {"id": "c", "choices": [{"message": message, "finish_reason": "stop"}], "usage": told}
