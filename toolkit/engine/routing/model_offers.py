"""The models that a vendor may be asked for, as the operator chose and priced them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal

from toolkit.plugins import Model, TextRequest, Vendor
from toolkit.plugins.conversation import TEXT_ABILITIES
from toolkit.plugins.vendor import BATCHES, OFF_PEAK_TIER
from toolkit.settings import TIERS, VendorSettings

OPERATOR_SOURCE = "the operator's price ([vendors] prices)"
_MILLION = 1_000_000
_ALL = Decimal(1)


def list_offered_models(
    vendor: Vendor, kind: str, settings: VendorSettings | None, today: date
) -> list[Model]:
    """List the models that a vendor may be asked for: those of the operator, or else all.

    The default comes first.

    Args:
        vendor: the vendor.
        kind: the kind of operation.
        settings: the operator's settings of this vendor.
        today: the day whose list prices apply.
    """
    base_url = settings.base_urls.get("api") if settings else None
    offers = {m.id: m.apply_changes(today) for m in vendor.models if m.kind == kind}
    choice = settings.models.get(kind) if settings else None
    if isinstance(choice, str):
        models = [offers.get(choice) or _make_unknown_model(choice, kind)]
    elif choice:
        models = [
            replace(offers.get(name) or _make_unknown_model(name, kind), quality=TIERS[tier])
            for tier, name in choice.items()
        ]
    else:
        default = vendor.find_default_model(kind)
        candidates = [model for model in offers.values() if not model.profile_of]
        models = sorted(candidates, key=lambda m: default is None or m.id != default.id)
    if vendor.name_at is not None and base_url is not None:
        models = [
            _rename_model(model, vendor.name_at(model.id, base_url), offers) for model in models
        ]
    return [apply_operator_prices(model, settings) for model in models]


def find_named_model(
    vendor: Vendor, kind: str, name: str, settings: VendorSettings | None, today: date
) -> Model:
    """Find a model that a request names; an unknown model has no price unless the operator set it.

    Args:
        vendor: the vendor.
        kind: the kind of operation.
        name: name of the model.
        settings: the operator's settings of this vendor.
        today: the day whose list prices apply.
    """
    known = list_known_models(vendor, settings, today)
    listed = find_model([model for model in known if model.kind == kind], name)
    default = vendor.find_default_model(kind) if vendor.is_local else None
    unknown = replace(default, id=name) if default else _make_unknown_model(name, kind)
    return listed or apply_operator_prices(unknown, settings)


def _make_unknown_model(name: str, kind: str) -> Model:
    """Make a model that the catalogue does not have; it counts as having all abilities."""
    abilities = TEXT_ABILITIES if kind == TextRequest.kind else frozenset[str]()
    return Model(name, kind, abilities=abilities)


def _rename_model(model: Model, name: str, offers: Mapping[str, Model]) -> Model:
    """Return the model under the operator's name for it, at the prices of that name."""
    called = offers.get(name, model)
    return replace(called, quality=model.quality, default=model.default)


def find_model(offers: Sequence[Model], name: str) -> Model | None:
    """Find the model of this name among the offered models of a vendor, or return None."""
    return next((model for model in offers if model.id == name), None)


def find_billed_model(
    vendor: Vendor, offers: Sequence[Model], model_name: str, reply_model: str, today: date
) -> Model | None:
    """Find the model at whose prices a call is billed: the chosen model, or its profile.

    A profile is a variant of the model with prices of its own, which the reply names. It does not
    count if the operator set the prices. Returns None if neither is known.

    Args:
        vendor: the vendor that was called.
        offers: the models that it may be asked for.
        model_name: the model that the router chose.
        reply_model: the model that the reply names.
        today: the day whose list prices apply.
    """
    model = find_model(offers, model_name)
    if model is not None and model.source == OPERATOR_SOURCE:
        return model
    profiles = (m for m in vendor.models if m.profile_of == model_name and m.id == reply_model)
    profile = next(profiles, None)
    return model if profile is None else profile.apply_changes(today)


def list_known_models(vendor: Vendor, settings: VendorSettings | None, today: date) -> list[Model]:
    """List the models of a vendor and of the operator's settings, with a day's prices."""
    models: list[Model] = []
    kinds = [
        *(model.kind for model in vendor.models),
        *(operation.kind for operation in vendor.operations),
    ]
    for kind in dict.fromkeys(kinds):
        offers = list_offered_models(vendor, kind, settings, today)
        first = offers[0].id if offers else ""
        ids = {model.id for model in offers}
        vendor_models = [m.apply_changes(today) for m in vendor.models if m.kind == kind]
        other_models = [
            apply_operator_prices(m, settings) for m in vendor_models if m.id not in ids
        ]
        models += [replace(model, default=model.id == first) for model in (*offers, *other_models)]
    return models


def apply_operator_prices(model: Model, settings: VendorSettings | None) -> Model:
    """Return the model at the operator's prices; unchanged if none are set for it."""
    prices = settings.find_prices(model.id) if settings and model.kind == TextRequest.kind else None
    if prices is None:
        return model
    per_token = {unit: usd / _MILLION for unit, usd in prices if usd is not None}
    return replace(
        model,
        prices=per_token,
        tiers=(),
        changes=(),
        batch=None,
        abilities=model.abilities - {BATCHES},
        # The operator's price holds at every hour.
        service_tiers={name: _ALL for name in model.service_tiers if name == OFF_PEAK_TIER},
        as_of="",
        source=OPERATOR_SOURCE,
    )
