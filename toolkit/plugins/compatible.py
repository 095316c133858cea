"""Declarations of vendors that speak another vendor's wire, with their own name and prices."""

import re
from collections.abc import Mapping
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
_MILLION = 1_000_000


class TextModel(TypedDict, total=False):
    """The prices and limits of a text model; `Model` says what else each means.

    Attributes:
        input_tokens, cached_input_tokens, cache_write_tokens, output_tokens: US dollars per
            million, as text so that they are exact; what is not billed is "0", what is left out is
            not known.
        output_limit: the most tokens that it can answer with.
        reasons: whether it may bill reasoning that nobody asked for.
    """

    input_tokens: str
    cached_input_tokens: str
    cache_write_tokens: str
    output_tokens: str
    output_limit: int
    reasons: bool
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

    The loader gives it that wire's flows; failures, faults and bills are told by its own id.

    Args:
        id: its provider id, in lower case.
        variable: the conventional environment variable of its key.
        base_url: the address that `/chat/completions` and `/models` are below.
        models: its models by name; the first is the default, unless another says that it is.
        title: its name for people, where that is not the id.

    Raises:
        ValueError: for an id that is no lower-case word, a base URL that is none, no models, or
            a model with an unknown field.

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
        raise ValueError(f"id cannot be {id!r}: a letter, then letters, digits and _, lower case")
    if not base_url.startswith(("https://", "http://")):
        raise ValueError(f"base_url cannot be {base_url!r}: it starts with https:// or http://")
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
            # Not every server counts reasoning against its cap: the model's own limit holds then.
            TextRequest: TokenBound(
                "the chat completions wire: its cap bounds what is generated",
                unless_it_reasons=True,
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
        ends=row.get("ends"),
        successor=row.get("successor", ""),
        as_of=row.get("as_of", ""),
        source=row.get("source", "its vendor's file"),
    )
