"""Loading of the price table as models, and of the vendors that are declared as data alone."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any

from toolkit.plugins import (
    Model,
    PriceTier,
    TextRequest,
    Vendor,
    WireDialect,
    openai_compatible,
)
from toolkit.plugins.compatible import build_model


@cache
def _load_table(name: str = "prices.toml") -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath(name).read_text(encoding="utf-8"))


def _find_row(vendor: str, model: str, table: str) -> Any:
    """Find the row of a model, or of a profile's base model, in `abilities.toml`.

    Returns the table's row `all` without a row of its own, and None without either.
    """
    rows = _load_table("abilities.toml").get(vendor, {}).get(table, {})
    base = model if model in rows else model.partition(".")[2]
    return rows.get(base, rows.get("all"))


def load_models(vendor: str) -> tuple[Model, ...]:
    """Load a vendor's models with their list prices per unit.

    A vendor of the table `resold` has models of another vendor, at the prices of each place.

    >>> [model.id for model in load_models("runpod") if model.kind == "image" and model.default]
    ['black-forest-labs-flux-1-dev']
    """
    table = _load_table()
    if vendor in table["resold"]:
        return tuple(_iter_resold_models(table["resold"][vendor]))
    usual = {"as_of": table["as_of"], "source": table["source"], "per": 1_000_000}
    models = []
    for kind, offered in table[vendor].items():
        for name, row in offered.items():
            filled = _fill_profiled_row(name, row, offered)
            known = {"abilities": _find_row(vendor, name, kind) or ()}
            if kind == TextRequest.kind:
                known["pictures"] = _find_row(vendor, name, "pictures")
                known["apart"] = _load_table("abilities.toml")[vendor][kind].get("apart", False)
            models.append(build_model(name, kind, {**usual, **known, **filled}))
    return tuple(models)


def _iter_resold_models(table: Mapping[str, Any]) -> Iterator[Model]:
    """Yield the models of another vendor, each followed by its profile of each place.

    A model whose place is not known costs as much as in the dearest place.
    """
    for original in load_models(table["of"]):
        offer = table.get(original.kind, {})
        if original.id not in offer.get("models", ()):
            continue
        model = replace(
            original,
            batch=None,
            service_tiers={},
            ends=None,
            successor="",
            as_of=table["as_of"],
            source=table["source"],
        )
        shares = {place: Decimal(share) for place, share in offer["shares"].items()}
        yield _scale_prices(model, max(shares.values()))
        for place, share in shares.items():
            profile = replace(model, id=f"{place}.{model.id}", profile_of=model.id, default=False)
            yield _scale_prices(profile, share)


def _scale_prices(model: Model, share: Decimal) -> Model:
    """Return a model whose prices are multiplied by a factor."""

    def scale(prices: Mapping[str, Decimal]) -> dict[str, Decimal]:
        return {unit: usd * share for unit, usd in prices.items()}

    def scale_tiers(tiers: tuple[PriceTier, ...]) -> tuple[PriceTier, ...]:
        return tuple(replace(tier, prices=scale(tier.prices)) for tier in tiers)

    changes = tuple(
        replace(change, prices=scale(change.prices), tiers=scale_tiers(change.tiers))
        for change in model.changes
    )
    return replace(
        model, prices=scale(model.prices), tiers=scale_tiers(model.tiers), changes=changes
    )


def load_compatible_vendors() -> Iterator[Vendor]:
    """Load the vendors of `compatible.toml`, whose API is OpenAI's with differences (dialects).

    >>> next(load_compatible_vendors()).base_urls
    {'api': 'https://api.mistral.ai/v1'}
    """
    table = _load_table("compatible.toml")
    for id, vendor in table["vendors"].items():
        usual = {"as_of": table["as_of"], "source": vendor["source"], "per": 1_000_000}
        models = [
            build_model(name, kind, {**usual, "abilities": vendor.get("abilities", ()), **row})
            for kind in ("text", "embedding", "transcription")
            for name, row in vendor.get(kind, {}).items()
        ]
        declared = openai_compatible(
            id=id,
            title=vendor["title"],
            variable=vendor["variable"],
            base_url=vendor["base_url"],
            models=models,
            dialect=_build_dialect(vendor),
            cap_source=vendor.get("cap_source", ""),
        )
        yield replace(
            declared,
            is_local=vendor.get("is_local", False),
            telemetry_name=vendor.get("telemetry_name"),
        )


def _build_dialect(vendor: Mapping[str, Any]) -> WireDialect:
    fields = vendor.get("dialect", {})
    costs = {name: Decimal(usd) for name, usd in fields.get("costs", {}).items()}
    extra = {name: row["extra"] for name, row in vendor["text"].items() if "extra" in row}
    return WireDialect(**{**fields, "costs": costs, "model_extra": extra})


def _fill_profiled_row(
    name: str, row: Mapping[str, Any], offered: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Fill the row of a model that is called by profiles with the values of the dearest profile."""
    profiles = [profile for profile in offered.values() if profile.get("profile_of") == name]
    if not profiles:
        return row
    dearest = max(profiles, key=lambda profile: Decimal(profile["output_tokens"]))
    return {**dearest, "profile_of": "", **row}
