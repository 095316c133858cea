"""The price table, as the models of the vendors' files."""

import tomllib
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any

from toolkit.plugins import Model, PriceChange, PriceTier

# Keys of a row that are no prices.
_NON_PRICE_KEYS = frozenset(
    ("above", "as_of", "batch", "changes", "default", "ends", "output_limit", "per", "profile_of",
     "public", "quality", "reasons", "service_tiers", "since", "source", "successor", "tiers")
)  # fmt: skip


@cache
def _load_table(name: str = "prices.toml") -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath(name).read_text(encoding="utf-8"))


def _find_abilities(vendor: str, model: str, kind: str) -> frozenset[str]:
    """Find the abilities of a model; a profile has those of its base model."""
    rows = _load_table("abilities.toml").get(vendor, {}).get(kind, {})
    base = model if model in rows else model.partition(".")[2]
    return frozenset(rows.get(base, rows.get("all", ())))


def load_models(vendor: str) -> tuple[Model, ...]:
    """Load a vendor's models with their list prices per unit.

    >>> [model.id for model in load_models("runpod") if model.kind == "image" and model.default]
    ['black-forest-labs-flux-1-dev']
    """
    return tuple(
        _build_model(vendor, name, kind, row)
        if "per" in row
        else _build_profiled_model(vendor, name, kind, row, offered)
        for kind, offered in _load_table()[vendor].items()
        for name, row in offered.items()
    )


def _build_profiled_model(
    vendor: str, name: str, kind: str, row: Mapping[str, Any], offered: Mapping[str, Any]
) -> Model:
    """Build a model that is called by a profile: it has the prices of its dearest profile."""
    profiles = [profile for profile in offered.values() if profile.get("profile_of") == name]
    dearest = max(profiles, key=lambda profile: Decimal(profile["output_tokens"]))
    return _build_model(vendor, name, kind, {**dearest, "profile_of": "", **row})


def _build_model(vendor: str, name: str, kind: str, row: Mapping[str, Any]) -> Model:
    table, batch = _load_table(), row.get("batch")
    return Model(
        id=name,
        kind=kind,
        prices=_parse_prices(row, row["per"]),
        tiers=_parse_tiers(row, row["per"]),
        changes=tuple(
            PriceChange(
                change["since"],
                _parse_prices(change, row["per"]),
                _parse_tiers(change, row["per"]),
            )
            for change in row.get("changes", ())
        ),
        batch=None if batch is None else Decimal(batch),
        service_tiers={
            name: Decimal(share) for name, share in row.get("service_tiers", {}).items()
        },
        default=row.get("default", False),
        quality=row.get("quality", 1),
        output_limit=row.get("output_limit"),
        reasons=row.get("reasons", False),
        abilities=_find_abilities(vendor, name, kind),
        ends=row.get("ends"),
        successor=row.get("successor", ""),
        as_of=row.get("as_of", table["as_of"]),
        source=row.get("source", table["source"]),
        profile_of=row.get("profile_of", ""),
        public=row.get("public", False),
    )


def _parse_tiers(row: Mapping[str, Any], per: int) -> tuple[PriceTier, ...]:
    return tuple(
        PriceTier(tier["above"], _parse_prices(tier, per)) for tier in row.get("tiers", ())
    )


def _parse_prices(row: Mapping[str, Any], per: int) -> dict[str, Decimal]:
    return {
        unit: Decimal(amount) / per for unit, amount in row.items() if unit not in _NON_PRICE_KEYS
    }
