"""The models that a vendor may be asked for, as the operator chose and priced them."""

from dataclasses import replace

from toolkit.plugins import Model, TextRequest, Vendor
from toolkit.settings import TIERS, VendorSettings

OPERATORS = "the operator's price ([vendors] prices)"
_MILLION = 1_000_000


def models_offered(vendor: Vendor, kind: str, settings: VendorSettings | None) -> list[Model]:
    """What a vendor may be asked for, the default first: the operator's choice, else all.

    Args:
        vendor: who is asked.
        kind: of operation.
        settings: the operator's, for this vendor.
    """
    offered = {model.id: model for model in vendor.models if model.kind == kind}
    chosen = settings.models.get(kind) if settings else None
    if isinstance(chosen, str):
        named = [offered.get(chosen, Model(chosen, kind))]
    elif chosen:
        named = [
            replace(offered.get(name, Model(name, kind)), quality=TIERS[tier])
            for tier, name in chosen.items()
        ]
    else:
        default = vendor.model_for(kind)
        named = sorted(offered.values(), key=lambda model: model is not default)
    return [priced_by_operator(model, settings) for model in named]


def models_known(vendor: Vendor, settings: VendorSettings | None) -> list[Model]:
    """Every model of a vendor, and those that the operator named beside them, with their prices."""
    known: list[Model] = []
    kinds = [*(model.kind for model in vendor.models), *(of.kind for of in vendor.operations)]
    for kind in dict.fromkeys(kinds):
        offered = models_offered(vendor, kind, settings)
        first = offered[0].id if offered else ""
        ids = {model.id for model in offered}
        listed = [m for m in vendor.models if m.kind == kind]
        others = [priced_by_operator(m, settings) for m in listed if m.id not in ids]
        known += [replace(model, default=model.id == first) for model in (*offered, *others)]
    return known


def priced_by_operator(model: Model, settings: VendorSettings | None) -> Model:
    """The model at the operator's prices; as it is, where none are set for it."""
    prices = settings.prices_of(model.id) if settings and model.kind == TextRequest.kind else None
    if prices is None:
        return model
    per_token = {unit: usd / _MILLION for unit, usd in prices}
    return replace(model, prices=per_token, tiers=(), batch=None, as_of="", source=OPERATORS)
