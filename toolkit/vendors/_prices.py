"""The price table, as the models of the vendors' files."""

import tomllib
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any

from toolkit.plugins import Model

_ABOUT = ("default", "quality", "per", "source", "as_of")


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("prices.toml").read_text(encoding="utf-8"))


def models(vendor: str) -> tuple[Model, ...]:
    """A vendor's models with their list prices, each per one unit.

    >>> [model.id for model in models("runpod") if model.kind == "image"]
    ['black-forest-labs-flux-1-dev']
    """
    table = _table()
    return tuple(
        Model(
            id=name,
            kind=kind,
            prices={
                unit: Decimal(amount) / row["per"]
                for unit, amount in row.items()
                if unit not in _ABOUT
            },
            default=row.get("default", False),
            quality=row.get("quality", 1),
            as_of=row.get("as_of", table["as_of"]),
            source=row.get("source", table["source"]),
        )
        for kind, offered in table[vendor].items()
        for name, row in offered.items()
    )
