"""What list prices are old, and which models are announced to end: for `toolkit doctor`."""

from collections.abc import Iterable, Iterator
from datetime import date, timedelta

from toolkit.engine.offers import models_known
from toolkit.plugins import Model, Vendor
from toolkit.settings import Settings

# As many names as a line has room for.
MOST_NAMED = 4


def review_prices(vendors: Iterable[Vendor], settings: Settings, today: date) -> Iterator[str]:
    """Tell, in one line each, of prices that were read long ago, and of models that end.

    Args:
        vendors: whose models.
        settings: from which age on prices are old; an operator's own prices are not judged.
        today: the day to go by.
    """
    oldest = timedelta(days=settings.max_price_age_days)
    for vendor in vendors:
        models = models_known(vendor, settings.vendors.get(vendor.id))
        old = [m for m in models if m.as_of and today - date.fromisoformat(m.as_of) > oldest]
        if old:
            read = min(date.fromisoformat(model.as_of) for model in old)
            yield (
                f"Prices of {vendor.id} were read {(today - read).days} days ago ({_names(old)}):"
                " compare them with the vendor's page, and set what differs in [vendors] prices."
            )
        for model in models:
            if model.ends is not None:
                ended = model.has_ended(today)
                instead = f"; its vendor names {model.successor}" if model.successor else ""
                state = "was shut down on" if ended else "will be shut down on"
                yield f"{vendor.id}'s {model.id} {state} {model.ends}{instead}."


def _names(models: list[Model]) -> str:
    names = [model.id for model in models[:MOST_NAMED]]
    return ", ".join([*names, "…"] if len(models) > MOST_NAMED else names)
