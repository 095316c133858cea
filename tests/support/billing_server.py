"""A server of OpenAI's chat protocol that keeps a ledger, priced by a third-party table."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Self

from genai_prices import Usage, calc_price

from tests.support.loopback_server import JsonHandler, LoopbackServer

# OpenAI's price list: each service tier's share of the standard price.
TIER_SHARES = {"default": Decimal(1), "flex": Decimal("0.5"), "priority": Decimal(2)}
MIN_CACHED_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class BillingRules:
    """The way the server bills, and the fields that it rejects.

    Attributes:
        project_tier: tier of requests that name none.
        refused: fields that the server answers with 400, all named in one message.
        ignored: fields that the server accepts without effect.
        refused_tier: tier that the server answers with 400.
        upstream: host that the server names as the one that answered.
        wording: text of the error, with the names of the fields in place of `{}`.
    """

    project_tier: str = "default"
    refused: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    refused_tier: str = ""
    upstream: str | None = None
    wording: str = "Unknown parameter: '{}'."


@dataclass(slots=True)
class BillingServer:
    """The server on loopback; it counts a token for each byte of a prompt, which is the worst case.

    Attributes:
        rules: the way the server bills.
        ledger: US dollars of each billed request.
        asked: bodies of all requests, including rejected requests.
        answered: usage in the response to each billed request.
    """

    rules: BillingRules = field(default_factory=BillingRules)
    ledger: list[Decimal] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    answered: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""
    _server: LoopbackServer | None = None

    @property
    def paid(self) -> Decimal:
        """Return the sum of all bills."""
        return sum(self.ledger, Decimal(0))

    def answer(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Bill a request and answer it, unless it has a rejected field."""
        self.asked.append(body)
        refused = [name for name in self.rules.refused if name in body]
        if body.get("service_tier") == self.rules.refused_tier:
            refused.append("service_tier")
        if refused:
            message = self.rules.wording.format("', '".join(refused))
            return 400, {"error": {"message": message, "type": "invalid_request_error"}}
        obeyed = {name: value for name, value in body.items() if name not in self.rules.ignored}
        input_tokens = sum(len(message["content"].encode()) for message in body["messages"])
        output_tokens = int(body["max_completion_tokens"])
        mode = (obeyed.get("prompt_cache_options") or {}).get("mode", "implicit")
        cache_writes = (
            input_tokens if mode == "implicit" and input_tokens >= MIN_CACHED_TOKENS else 0
        )
        asked_tier = obeyed.get("service_tier", "auto")
        tier = self.rules.project_tier if asked_tier == "auto" else asked_tier
        tokens = Usage(
            input_tokens=input_tokens, cache_write_tokens=cache_writes, output_tokens=output_tokens
        )
        price = calc_price(tokens, model_ref=body["model"], provider_id="openai").total_price
        self.ledger.append(price * TIER_SHARES[tier])
        usage = {
            "prompt_tokens": input_tokens,
            "completion_tokens": output_tokens,
            "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": cache_writes},
        }
        self.answered.append(usage)
        message = {"role": "assistant", "content": "So it is."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        head = {"id": "chatcmpl-1", "model": body["model"], "service_tier": tier}
        if self.rules.upstream is not None:
            head["provider"] = self.rules.upstream
        return 200, {**head, "choices": [choice], "usage": usage}

    def __enter__(self) -> Self:
        """Begin to serve."""
        books = self

        class Handler(JsonHandler):
            def answer_get(self) -> None:
                self.send_json(200, {"data": [{"id": "gpt-6-luna"}]})

            def answer_post(self) -> None:
                body = self.read_json()
                self.send_json(*books.answer(body))

        self._server = LoopbackServer(Handler)
        self.url = self._server.url
        return self

    def __exit__(self, *_: object) -> None:
        """Stop serving."""
        assert self._server is not None
        self._server.close()
