"""Declarations of vendors whose API has the format of OpenAI's, but its own name and prices."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from datetime import date
from decimal import Decimal
from typing import Any, TypedDict

from toolkit.plugins.bounds import DurationBound, InputBound, PictureRule, TokenBound
from toolkit.plugins.operations import EmbedRequest, TextRequest, TranscribeRequest
from toolkit.plugins.vendor import Model, PriceChange, PriceTier, Vendor, WireDialect

OPENAI_WIRE = "openai"
# The model of a local server: the first of its kind that the server lists.
FIRST_LISTED_MODEL = "first-listed"
_ID = re.compile(r"[a-z][a-z0-9_]*")
# The largest pictures that open models with vision read (Qwen2.5-VL: 16,384 patches of 28 pixels).
_MAX_PICTURE_TOKENS = 16_384
_USUAL_ABILITIES = ("seed", "stop", "tools", "top_p")
_MODEL_FIELDS = frozenset(field.name for field in fields(Model))
_NO_PRICES = _MODEL_FIELDS | {"above", "apart", "extra", "per", "since"}


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
    models: Mapping[str, TextModel] | Sequence[Model],
    title: str = "",
    dialect: WireDialect | None = None,
    cap_source: str = "",
) -> Vendor:
    """Declare a vendor whose chat completions have the format of OpenAI's API.

    The loader adds the code that sends OpenAI's requests. Errors and bills name the vendor's id.

    Args:
        id: the provider id, in lower case.
        variable: the conventional environment variable of the vendor's key.
        base_url: the URL above `/chat/completions` and `/models`.
        models: text models by name; the first is the default unless another sets `default`. Or
            models of texts, embeddings and transcripts, each kind with a default.
        title: display name; the id by default.
        dialect: differences of the vendor from OpenAI's wire, such as names of fields.
        cap_source: page that says that the cap of the output counts reasoning. Without such a
            page, a budget reserves the whole output limit of a model that `reasons`.

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
    return Vendor(
        id=id,
        title=title or id,
        variable=variable,
        base_urls={"api": base_url.rstrip("/")},
        operations={},
        models=_build_models(models) if isinstance(models, Mapping) else tuple(models),
        bounds={
            # Some servers do not count reasoning against the cap, so the model's limit holds then.
            TextRequest: TokenBound(
                cap_source or "the chat completions wire: its cap bounds what is generated",
                unless_it_reasons=not cap_source,
                picture=_MAX_PICTURE_TOKENS,
            ),
            EmbedRequest: InputBound("the embeddings wire: the tokens of the input alone"),
            TranscribeRequest: DurationBound("the wire of transcripts: the duration of the audio"),
        },
        wire=OPENAI_WIRE,
        dialect=dialect or WireDialect(),
    )


def _build_models(models: Mapping[str, TextModel]) -> tuple[Model, ...]:
    default = next((name for name, row in models.items() if row.get("default")), next(iter(models)))
    return tuple(_build_model(name, row, name == default) for name, row in models.items())


def _build_model(name: str, row: TextModel, default: bool) -> Model:
    unknown = sorted(row.keys() - TextModel.__annotations__.keys())
    if unknown:
        raise ValueError(f"model {name!r} has an unknown field: {', '.join(unknown)}")
    usual = {"per": 1_000_000, "abilities": _USUAL_ABILITIES, "source": "its vendor's file"}
    return build_model(name, TextRequest.kind, {**usual, **row, "default": default})


def build_model(name: str, kind: str, row: Mapping[str, Any]) -> Model:
    """Build a model of a row with prices of `per` units by unit, and with fields of `Model`.

    A model that takes tools and reasoning takes both together, unless the row says `apart`.
    """
    abilities = frozenset(row["abilities"])
    if {"reasoning", "tools"} <= abilities and not row.get("apart"):
        abilities |= {"reasoning_with_tools"}
    members = {field: value for field, value in row.items() if field in _MODEL_FIELDS}
    members |= {
        "tiers": _parse_tiers(row, row["per"]),
        "changes": tuple(
            PriceChange(
                change["since"],
                _parse_prices(change, row["per"]),
                _parse_tiers(change, row["per"]),
            )
            for change in row.get("changes", ())
        ),
        "service_tiers": {
            tier: Decimal(share) for tier, share in row.get("service_tiers", {}).items()
        },
        "abilities": abilities,
    }
    if "batch" in row:
        members["batch"] = Decimal(row["batch"])
    if row.get("pictures") is not None:
        members["pictures"] = PictureRule(**row["pictures"])
    return Model(id=name, kind=kind, prices=_parse_prices(row, row["per"]), **members)


def _parse_tiers(row: Mapping[str, Any], per: int) -> tuple[PriceTier, ...]:
    return tuple(
        PriceTier(tier["above"], _parse_prices(tier, per)) for tier in row.get("tiers", ())
    )


def _parse_prices(row: Mapping[str, Any], per: int) -> dict[str, Decimal]:
    prices = {unit: amount for unit, amount in row.items() if unit not in _NO_PRICES}
    return {unit: Decimal(str(amount)) / per for unit, amount in prices.items()}
