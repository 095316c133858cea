"""Declarations of vendors that speak another vendor's wire, with their own name and prices."""

import re
from collections.abc import Collection, Mapping
from datetime import date
from decimal import Decimal
from typing import TypedDict

from toolkit.plugins.bounds import TokenBound
from toolkit.plugins.operations import TextRequest
from toolkit.plugins.pricing import CACHE_WRITE_TOKENS, CACHED_INPUT_TOKENS, INPUT_TOKENS
from toolkit.plugins.vendor import Model, Vendor

OPENAI_WIRE = "openai"
_ID = re.compile(r"[a-z][a-z0-9_]*")
_PRICED_UNITS = (INPUT_TOKENS, CACHED_INPUT_TOKENS, CACHE_WRITE_TOKENS, "output_tokens")
# The largest pictures that open models with vision read (Qwen2.5-VL: 16,384 patches of 28 pixels).
_MAX_PICTURE_TOKENS = 16_384
_USUAL_ABILITIES = ("seed", "stop", "tools", "top_p")
_MILLION = 1_000_000


class TextModel(TypedDict, total=False):
    """The prices and limits of a text model; `Model` explains the other fields.

    Attributes:
        input_tokens, cached_input_tokens, cache_write_tokens, output_tokens: US dollars per
            million, as text so that they are exact. "0" means that the unit is not billed; a
            missing price is unknown.
        output_limit: maximum output tokens.
        reasons: True if the model may bill reasoning without being asked for it.
        abilities: what the model takes beyond text, as `Model.abilities`; tools, seed, stop and
            top_p by default.
    """

    input_tokens: str
    cached_input_tokens: str
    cache_write_tokens: str
    output_tokens: str
    output_limit: int
    reasons: bool
    abilities: Collection[str]
    quality: int
    default: bool
    ends: date
    successor: str
    as_of: str
    source: str


def openai_compatible(
    *,
    id: str,
    variable: str,
    base_url: str,
    models: Mapping[str, TextModel],
    title: str = "",
) -> Vendor:
    """Declare a vendor whose chat completions are OpenAI's wire.

    The loader adds that wire's flows. Failures, faults and bills name the vendor's own id.

    Args:
        id: the provider id, in lower case.
        variable: the conventional environment variable of the vendor's key.
        base_url: the URL above `/chat/completions` and `/models`.
        models: models by name; the first is the default unless another sets `default`.
        title: display name; the id by default.

    Raises:
        ValueError: the id is not a lower-case word, or the base URL is not a URL. Also if there
            are no models, or a model has an unknown field.

    >>> vendor = openai_compatible(
    ...     id="moonbeam",
    ...     variable="MOONBEAM_API_KEY",
    ...     base_url="https://api.moonbeam.example/v1",
    ...     models={"beam-1": {"input_tokens": "0.20", "output_tokens": "0.80"}},
    ... )
    >>> vendor.find_default_model("text").prices["output_tokens"]
    Decimal('8E-7')
    """
    if not _ID.fullmatch(id):
        raise ValueError(
            f"id cannot be {id!r}: use a lower-case letter, then lower-case letters, digits or _"
        )
    if not base_url.startswith(("https://", "http://")):
        raise ValueError(f"base_url cannot be {base_url!r}: start it with https:// or http://")
    if not models:
        raise ValueError(f"{id} has no models: name at least one")
    default = next((name for name, row in models.items() if row.get("default")), next(iter(models)))
    return Vendor(
        id=id,
        title=title or id,
        variable=variable,
        base_urls={"api": base_url.rstrip("/")},
        operations={},
        models=tuple(_build_model(name, row, name == default) for name, row in models.items()),
        bounds={
            # Some servers do not count reasoning against the cap, so the model's limit holds then.
            TextRequest: TokenBound(
                "the chat completions wire: its cap bounds what is generated",
                unless_it_reasons=True,
                picture=_MAX_PICTURE_TOKENS,
            )
        },
        wire=OPENAI_WIRE,
    )


def _build_model(name: str, row: TextModel, default: bool) -> Model:
    unknown = sorted(row.keys() - TextModel.__annotations__.keys())
    if unknown:
        raise ValueError(f"model {name!r} has an unknown field: {', '.join(unknown)}")
    amounts = {unit: row.get(unit) for unit in _PRICED_UNITS}
    return Model(
        id=name,
        kind=TextRequest.kind,
        prices={
            unit: Decimal(str(amount)) / _MILLION
            for unit, amount in amounts.items()
            if amount is not None
        },
        default=default,
        quality=row.get("quality", 1),
        output_limit=row.get("output_limit"),
        reasons=row.get("reasons", False),
        abilities=frozenset(row.get("abilities", _USUAL_ABILITIES)),
        ends=row.get("ends"),
        successor=row.get("successor", ""),
        as_of=row.get("as_of", ""),
        source=row.get("source", "its vendor's file"),
    )
