"""The Verse Club, a vendor of texts with its own API: `POST /verses`."""

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
    """Request a text. Every failure has a code of the toolkit, and no error has the key."""
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
            # A free meter has the price 0. A missing price is unknown.
            prices={"input_tokens": Decimal(0), "output_tokens": Decimal("0.00001")},
            default=True,
            as_of="2026-11-20",
            source="the club's price list",
        ),
    ),
    # The maximum bill. Without a bound, a budget excludes the vendor's models.
    bounds={TextRequest: TokenBound("the club's price list: at most the requested words")},
)
