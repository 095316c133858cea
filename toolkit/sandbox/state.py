"""The state of one vendor cloud: its seed, faults and each vendor's records."""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from starlette.requests import Request

from toolkit.sandbox.faults import CallEffects, Faults, VendorCall
from toolkit.sandbox.vendor_paths import VENDOR_PATHS, CompatibleVendor

T = TypeVar("T")

EPOCH = 1_795_132_800  # 2026-11-20: time stamps derive from it, so that bytes repeat


class SandboxState:
    """The state of one app, shared by its routes, and open to tests as `app.state.sandbox`."""

    def __init__(
        self,
        seed: int,
        latency_ms: float,
        faults: Faults | None = None,
        compatible: Sequence[CompatibleVendor] = (),
    ) -> None:
        self.seed = seed
        self.latency_ms = latency_ms
        self.faults = Faults(seed) if faults is None else faults
        self.faults.add_vendors(vendor.id for vendor in compatible)
        self.vendor_paths = VENDOR_PATHS | {vendor.id: vendor.path for vendor in compatible}
        self.clock: Callable[[], float] = time.monotonic
        self._digest_counts: Counter[str] = Counter()
        self._records: dict[type, object] = {}

    def compute_digest(self, *parts: object) -> str:
        """Compute a hexadecimal digest of the seed and `parts` alone."""
        text = "\x1f".join(str(part) for part in (self.seed, *parts))
        return hashlib.sha256(text.encode()).hexdigest()

    def compute_fresh_digest(self, *parts: object) -> str:
        """Compute a digest that differs each time that the same parts come again."""
        key = self.compute_digest(*parts)
        self._digest_counts[key] += 1
        return self.compute_digest(key, self._digest_counts[key])

    def get_records(self, kind: type[T]) -> T:
        """Return a vendor's own records: one instance of `kind`, created at the first call."""
        records = self._records.get(kind)
        if not isinstance(records, kind):
            records = kind()
            self._records[kind] = records
        return records

    @property
    def calls(self) -> list[VendorCall]:
        """The log of all requests that reached a vendor."""
        return self.faults.calls


def get_call(request: Request) -> VendorCall:
    """Return the log's record of the current request."""
    call: VendorCall = request.scope["sandbox_call"]
    return call


def mark_billed(request: Request) -> None:
    """Mark the call as billed by the vendor."""
    get_call(request).billed = True


def get_effects(request: Request) -> CallEffects:
    """Return the effects of faults on the current request."""
    effects: CallEffects = request.scope["sandbox_effects"]
    return effects


def get_request_digest(request: Request) -> str:
    """Return the digest of the current request, from which every id in its reply is made."""
    return get_call(request).digest
