"""What one vendor cloud remembers: its seed, call log, fault script and each vendor's records."""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.requests import Request

T = TypeVar("T")

EPOCH = 1_795_132_800  # 2026-11-20: time stamps derive from it, so that bytes repeat


@dataclass(slots=True)
class Call:
    """One request that reached a vendor; `status` stays 0 while it has no answer."""

    n: int
    vendor: str
    method: str
    path: str
    digest: str
    status: int = 0
    billed: bool = False


@dataclass(slots=True)
class Fault:
    """What happens to the next `times` calls that match `vendor` and `path_contains`.

    Without `status`, `body` and `drop` a fault only delays: the vendor's own answer follows.
    """

    vendor: str
    path_contains: str = ""
    status: int | None = None
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    times: int = 1
    delay_ms: float = 0.0
    drop: bool = False

    def answers(self) -> bool:
        """Whether the fault replaces the vendor's answer."""
        return self.drop or self.status is not None or self.body is not None


class SandboxState:
    """The memory of one app: shared by its routes, open to tests as `app.state.sandbox`."""

    def __init__(self, seed: int, latency_ms: float) -> None:
        self.seed = seed
        self.latency_ms = latency_ms
        self.calls: list[Call] = []
        self.faults: list[Fault] = []
        self.clock: Callable[[], float] = time.monotonic
        self._seen: Counter[str] = Counter()
        self._shelves: dict[type, object] = {}

    def digest(self, *parts: object) -> str:
        """Hexadecimal digits that depend on the seed and `parts` alone."""
        text = "\x1f".join(str(part) for part in (self.seed, *parts))
        return hashlib.sha256(text.encode()).hexdigest()

    def fresh(self, *parts: object) -> str:
        """Like `digest`, but another value each time the same parts come again."""
        key = self.digest(*parts)
        self._seen[key] += 1
        return self.digest(key, self._seen[key])

    def shelf(self, kind: type[T]) -> T:
        """A vendor's own records: one instance of `kind`, made when first asked for."""
        found = self._shelves.get(kind)
        if not isinstance(found, kind):
            found = kind()
            self._shelves[kind] = found
        return found

    def fail(
        self,
        vendor: str,
        *,
        path_contains: str = "",
        status: int | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        times: int = 1,
        delay_ms: float = 0.0,
        drop: bool = False,
    ) -> Fault:
        """Script a fault for the next matching calls, after those scripted before."""
        fault = Fault(
            vendor, path_contains, status, body, dict(headers or {}), times, delay_ms, drop
        )
        self.faults.append(fault)
        return fault

    def take_fault(self, vendor: str, path: str) -> Fault | None:
        """The fault that this call meets, used up by one."""
        for fault in self.faults:
            if fault.vendor == vendor and fault.path_contains in path:
                fault.times -= 1
                if fault.times <= 0:
                    self.faults.remove(fault)
                return fault
        return None


def bill(request: Request) -> None:
    """Mark the call as one that the vendor would charge for."""
    call = request.scope.get("sandbox_call")
    if isinstance(call, Call):
        call.billed = True


def request_digest(request: Request) -> str:
    """The digest of the request being answered: the root of every id in its reply."""
    call = request.scope["sandbox_call"]
    assert isinstance(call, Call)  # noqa: S101 - the front door always puts it there
    return call.digest
