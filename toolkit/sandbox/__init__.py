"""The simulated vendor cloud: an ASGI app that speaks the vendors' real wires without real keys."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolkit.sandbox.faults import Fault, Faults, VendorCall
from toolkit.sandbox.vendor_paths import (
    LOCAL_EMBEDDERS,
    LOCAL_MODELS,
    SANDBOX_KEYS,
    VENDOR_PATHS,
    CompatibleVendor,
)

if TYPE_CHECKING:
    from starlette.applications import Starlette

__all__ = [
    "LOCAL_EMBEDDERS",
    "LOCAL_MODELS",
    "SANDBOX_KEYS",
    "VENDOR_PATHS",
    "CompatibleVendor",
    "Fault",
    "Faults",
    "VendorCall",
    "create_app",
]


def create_app(
    seed: int = 0,
    *,
    latency_ms: float = 0,
    faults: Faults | None = None,
    compatible: Sequence[CompatibleVendor] = (),
) -> "Starlette":
    """Create a vendor cloud whose answers depend only on `seed` and on the requests.

    Args:
        seed: seed of every byte of its answers.
        latency_ms: delay of each answer in milliseconds.
        faults: script of faults, which can change while the cloud runs, and log of calls.
        compatible: additional vendors that speak OpenAI's wire.
    """
    from toolkit.sandbox.app import build_app  # starlette is slow to import

    return build_app(seed, latency_ms, faults, compatible)
