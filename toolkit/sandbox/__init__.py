"""The simulated vendor cloud: one ASGI app that speaks the vendors' real wires without a key."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolkit.sandbox.faults import Fault, Faults, VendorCall
from toolkit.sandbox.keys import SANDBOX_KEYS
from toolkit.sandbox.vendor_paths import COMPATIBLE_WIRES, VENDOR_PATHS, CompatibleVendor

if TYPE_CHECKING:
    from starlette.applications import Starlette

__all__ = [
    "COMPATIBLE_WIRES",
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
    """Make a vendor cloud whose answers depend only on `seed` and on what it is asked.

    Args:
        seed: decides every byte of its answers.
        latency_ms: how long each answer takes.
        faults: what goes wrong, changeable while it runs; it keeps the log of calls, too.
        compatible: more vendors, which speak a wire that the cloud knows.
    """
    from toolkit.sandbox.app import build_app  # starlette is slow to import

    return build_app(seed, latency_ms, faults, compatible)
