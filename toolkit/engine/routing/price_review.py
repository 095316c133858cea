"""Review of prices for `toolkit doctor`: old or operator-set prices, and models that end."""

from collections.abc import Iterable, Iterator
from datetime import date, timedelta

from toolkit.contract.money import format_usd
from toolkit.engine.routing.model_offers import list_known_models
from toolkit.plugins import Model, TextRequest, Vendor
from toolkit.settings import EVERY_MODEL, Settings, VendorSettings

# The most model names in a line.
MAX_NAMED_MODELS = 4


def review_prices(vendors: Iterable[Vendor], settings: Settings, today: date) -> Iterator[str]:
    """Report, in one line each, prices that are old or set by the operator, and models that end.

    Args:
        vendors: the vendors of the models.
        settings: the operator's prices, and the age in days from which prices are old.
        today: the current day.
    """
    oldest = timedelta(days=settings.max_price_age_days)
    for vendor in vendors:
        vendor_settings = settings.vendors.get(vendor.id)
        models = list_known_models(vendor, vendor_settings, today)
        yield from _describe_own_prices(vendor, vendor_settings, models)
        old = [m for m in models if m.as_of and today - date.fromisoformat(m.as_of) > oldest]
        if old:
            as_of = min(date.fromisoformat(model.as_of) for model in old)
            yield (
                f"Prices of {vendor.id} were read {(today - as_of).days} days ago"
                f" ({_format_names(old)}):"
                " compare them with the vendor's page, and set changed prices in [vendors] prices."
            )
        for model in models:
            if model.ends is not None:
                has_ended = model.has_ended(today)
                instead = f"; its vendor recommends {model.successor}" if model.successor else ""
                state = "was shut down on" if has_ended else "will be shut down on"
                yield f"{vendor.id}'s {model.id} {state} {model.ends}{instead}."


def _describe_own_prices(
    vendor: Vendor, vendor_settings: VendorSettings | None, models: list[Model]
) -> Iterator[str]:
    """Report the operator's prices, and which of them are for no known model."""
    model_ids = {model.id for model in models if model.kind == TextRequest.kind}
    for name, prices in vendor_settings.prices.items() if vendor_settings else ():
        if name not in {*model_ids, EVERY_MODEL}:
            yield (
                f"[vendors.{vendor.id}] prices has {name}, which is not a text model of"
                f" {vendor.id}: use one of {', '.join(sorted(model_ids)) or 'its models'}."
            )
            continue
        scope = "all models without their own price" if name == EVERY_MODEL else name
        input_usd, output_usd = format_usd(prices.input_tokens), format_usd(prices.output_tokens)
        yield (
            f"[vendors.{vendor.id}] prices replaces the list prices of {scope}:"
            f" {input_usd} in and {output_usd} out for a million tokens."
        )


def _format_names(models: list[Model]) -> str:
    names = [model.id for model in models[:MAX_NAMED_MODELS]]
    return ", ".join([*names, "…"] if len(models) > MAX_NAMED_MODELS else names)
