"""The Verse Club: text by its own little wire, `POST /verses`."""

from decimal import Decimal

import httpx

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import (
    Access,
    Cost,
    Flow,
    Model,
    ProviderError,
    TextReply,
    TextRequest,
    TokenBound,
    Vendor,
    send,
)

CODES = {
    401: ErrorCode.PROVIDER_AUTH_FAILED,
    429: ErrorCode.PROVIDER_RATE_LIMITED,
    503: ErrorCode.PROVIDER_UNAVAILABLE,
}


def text(operation: TextRequest, access: Access) -> Flow[TextReply]:
    """Ask for a text; every failure has one of the toolkit's codes, and quotes no key."""
    response = yield from send(
        httpx.Request(
            "POST",
            access.url("/verses"),
            json={"about": operation.prompt, "most_words": operation.max_tokens},
            headers={"X-Club-Key": access.secret},
        )
    )
    if response.status_code != 200:
        code = CODES.get(response.status_code, ErrorCode.PROVIDER_REJECTED)
        raise ProviderError(code, f"The Verse Club answered {response.status_code}.")
    body = response.json()
    return TextReply(
        text=body["text"],
        model=access.model,
        vendor_request_id=body["id"],
        cost=Cost({"output_tokens": float(body["words"])}),
    )


VENDOR = Vendor(
    id="verse_club",
    title="The Verse Club",
    variable="VERSE_CLUB_KEY",
    base_urls={"api": "https://verse.example"},
    operations={TextRequest: text},
    models=(
        Model(
            id="bard-1",
            kind="text",
            # What is not billed has the price 0; a price that is left out is unknown.
            prices={"input_tokens": Decimal(0), "output_tokens": Decimal("0.00001")},
            default=True,
            as_of="2026-11-20",
            source="the club's price list",
        ),
    ),
    # The most that it bills: without this, its models cannot be used under a budget.
    bounds={TextRequest: TokenBound("the club's price list: no more words than were asked for")},
)
