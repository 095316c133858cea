"""Vendors that bill what a real tokenizer counts, by rules of their own, and keep a ledger.

They share nothing with the engine or the sandbox: their prices stand here, as on their pages.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import httpx

MILLION = Decimal(1_000_000)
# The tier that serves a request, by the vendors' own words for it.
_TIERS = {"default": "standard", "standard": "standard", "standard_only": "standard"}


@dataclass(frozen=True, slots=True)
class Tariff:
    """Dollars per million tokens in and out, and from which input length on they are others.

    Attributes:
        write: price of input that is written to the prompt cache, as a share of other input's.
        tiers: price of each other service tier, as a share of the standard tier's.
    """

    given: str
    made: str
    above: int = 10**9
    dearer: tuple[str, str] = ("0", "0")
    write: str = "1"
    tiers: Mapping[str, str] = field(default_factory=dict)

    def usd(self, bill: "Bill") -> Decimal:
        """The bill of one request."""
        rates = self.dearer if bill.given > self.above else (self.given, self.made)
        counted = bill.given + bill.written * (Decimal(self.write) - 1)
        whole = Decimal(rates[0]) * counted + Decimal(rates[1]) * bill.made
        return whole * Decimal(self.tiers.get(bill.tier, "1")) / MILLION


@dataclass(frozen=True, slots=True)
class Bill:
    """The tokens of one request in and out, those written to the cache, and the tier."""

    given: int
    made: int
    written: int
    tier: str


TARIFFS = {
    "openai": Tariff(
        "0.10", "0.50", 272_000, ("0.20", "0.75"), "1.25", {"priority": "2", "flex": "0.5"}
    ),
    "anthropic": Tariff("0.10", "0.50", 100_000, ("0.50", "2.50"), "1.25", {"priority": "1.5"}),
    "google": Tariff("0.75", "3.75", tiers={"priority": "1.8", "flex": "0.5"}),
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
        thoughts: tokens of reasoning that a model wants to spend. At Google they come on top of
            the cap, as its guide says, up to the thinking budget; elsewhere within the cap.
        overthinks: whether Google's models think past their budget, as they were seen to, but then
            within the cap.
        writes: whether OpenAI's server writes each prompt to its cache: `implicit` unless a request
            asks for the mode `explicit`, `always` or `never`.
        project_tier: the tier of the requests that name none.
        refuses: names of fields that are refused with 400, for which nothing is billed.
        outcome: `answered`; `lost`, where the answer never comes; `garbled`, where it is no JSON;
            `silent`, where it does not tell what was billed.
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
    "usage not told": Rule(share=1.0, outcome="silent"),
}


@dataclass(slots=True)
class Billing(httpx.AsyncBaseTransport):
    """The vendors' hosts, as something that a request is handed to.

    Attributes:
        count: the tokenizer.
        rule: how is billed.
        every: with an `outcome` of its own, only each so many requests have it.
        holds: whether each so many answers do not come before the caller leaves.
        ledger: what each request was billed, in US dollars.
        held: set once an answer is held.
    """

    count: Callable[[str], int]
    rule: Rule
    every: int = 3
    holds: bool = False
    ledger: list[Decimal] = field(default_factory=list)
    held: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Bill a request, and answer it as the rule has it."""
        vendor = _HOSTS[request.url.host]
        body = json.loads(await request.aread())
        refused = [name for name in self.rule.refuses if name in body]
        if refused:
            error = {"message": f"Unknown parameter: '{refused[0]}'.", "param": refused[0]}
            return httpx.Response(400, json={"error": error}, request=request)
        bill = self._measure(vendor, body)
        self.ledger.append(TARIFFS[vendor].usd(bill))
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
        answer = _answer(vendor, None if outcome == "silent" else bill)
        return httpx.Response(200, json=answer, headers=headers, request=request)

    def _measure(self, vendor: str, body: Any) -> Bill:
        given = sum(map(self.count, _texts(body))) + self.rule.template
        cap = _cap(body)
        made = max(1, int(cap * self.rule.share))
        if vendor == "google" and not self.rule.overthinks:
            config = body["generationConfig"].get("thinkingConfig", {})
            made += min(self.rule.thoughts, config.get("thinkingBudget", self.rule.thoughts))
        else:
            made = min(made + self.rule.thoughts, cap)
        mode = body.get("prompt_cache_options", {}).get("mode", "implicit")
        writes = self.rule.writes == "always" or (self.rule.writes, mode) == ("implicit",) * 2
        written = given if vendor == "openai" and writes else 0
        named = body.get("service_tier", body.get("serviceTier", "auto"))
        tier = self.rule.project_tier if named == "auto" else _TIERS[named]
        return Bill(given, made + self.rule.stop, written, tier)


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


def _answer(vendor: str, bill: Bill | None) -> dict[str, Any]:
    if vendor == "anthropic":
        told: dict[str, Any] = {}
        if bill is not None:
            told = {"input_tokens": bill.given, "output_tokens": bill.made}
            told["service_tier"] = bill.tier
        content = [{"type": "text", "text": "So it is."}]
        return {"id": "m", "content": content, "stop_reason": "end_turn", "usage": told}
    if vendor == "google":
        told = {}
        if bill is not None:
            told = {"promptTokenCount": bill.given, "candidatesTokenCount": bill.made}
        parts = {"parts": [{"text": "So it is."}]}
        candidates = [{"content": parts, "finishReason": "STOP"}]
        return {"candidates": candidates, "usageMetadata": told}
    message = {"role": "assistant", "content": "So it is."}
    head: dict[str, Any] = {"id": "c"}
    told = {}
    if bill is not None:
        told = {"prompt_tokens": bill.given, "completion_tokens": bill.made}
        told["prompt_tokens_details"] = {"cache_write_tokens": bill.written}
        if vendor == "openai":
            head["service_tier"] = {"standard": "default"}.get(bill.tier, bill.tier)
    return {**head, "choices": [{"message": message, "finish_reason": "stop"}], "usage": told}
