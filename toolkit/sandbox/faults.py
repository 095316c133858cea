"""Scripted faults: errors, delays and damage between a caller and the simulated vendors."""

import math
import threading
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass

from toolkit.sandbox.vendor_paths import find_wires

if TYPE_CHECKING:
    import pandas as pd

Mangle = Literal["truncate", "garbage", "drip", "hang", "drop"]


@dataclass(slots=True)
class VendorCall:
    """A request that reached a vendor; `status` stays 0 while it has no answer.

    Attributes:
        billed: True if the vendor bills the call.
        batch_id: id of the batch that the call created, or of which it is an item; "" for others.
        custom_id: the custom id of an item of a batch, or its number if it has none; "" for a call
            that a client made. Items are billed at the price of batches.
    """

    n: int
    vendor: str
    method: str
    path: str
    digest: str
    request_id: str
    status: int = 0
    billed: bool = False
    at_s: float = 0.0
    took_ms: float = 0.0
    fault: str = ""
    batch_id: str = ""
    custom_id: str = ""


@pydantic_dataclass(slots=True, config=ConfigDict(strict=True, extra="forbid"))
class Fault:
    """A fault for calls that match `vendor` and `path_contains`.

    Attributes:
        vendor: a vendor, such as `runpod`, for all of its wires; a single wire, such as
            `runpod-jobs` or `runpod-api`; or `*` for all vendors.
        path_contains: a part of the path below the vendor's own address.
        status: HTTP status of the answer, in the vendor's own format unless `body` is given.
        body: body of the answer: a text as it is, any other value as JSON.
        headers: headers of the answer.
        times: number of matching calls that the fault affects; None means all of them.
        share: share of the matching calls, from 0 to 1, drawn by the seed.
        delay_ms: delay of the answer in milliseconds, plus or minus `spread_ms` (uniform).
        piece_ms: delay in milliseconds before each piece of a streamed answer except the first.
        mangle: damage to the answer: `truncate` sends half of it, `garbage` sends noise, `drip`
            sends pieces over `drip_s` seconds, `hang` never answers, `drop` cuts the connection.
        rate_per_s, burst: rate and size of a token bucket. If it is empty, a call is answered with
            429 and the time until the next token as `Retry-After`.
        from_s, until_s: start and end of the fault, in seconds since the cloud was opened.
        refuse_key: True refuses every key.
        price_factor: factor for the prices that a vendor states in its answers.
        service_tier: the service tier of the account's project, such as `priority`. It serves
            every request that asks for no tier, or for `auto`.
        custom_id_contains: a part of the custom id of an item of a batch. The fault then affects
            only such items; "" means all items. Faults without it affect only calls of clients.
        batch_s: duration in seconds of a batch that a matching call creates.
        batch_expiry_s: seconds after which such a batch expires.
    """

    vendor: str
    path_contains: str = ""
    status: int | None = None
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    times: Annotated[int, Field(ge=1)] | None = None
    share: Annotated[float, Field(ge=0, le=1)] = 1.0
    delay_ms: float = 0.0
    spread_ms: float = 0.0
    piece_ms: float = 0.0
    mangle: Mangle | None = None
    drip_s: float = 1.0
    rate_per_s: Annotated[float, Field(gt=0)] | None = None
    burst: int = 1
    from_s: float = 0.0
    until_s: float | None = None
    refuse_key: bool = False
    price_factor: float | None = None
    service_tier: str | None = None
    custom_id_contains: str | None = None
    batch_s: Annotated[float, Field(ge=0)] | None = None
    batch_expiry_s: Annotated[float, Field(ge=0)] | None = None

    def __post_init__(self) -> None:
        if self.custom_id_contains is not None and self.mangle is not None:
            raise ValueError("mangle damages a connection, and an item of a batch has none")

    def summarize(self) -> str:
        """Return the fault's name for the call log."""
        if self.refuse_key:
            return "refuse_key"
        if self.rate_per_s is not None:
            return "rate_limit"
        if self.status is not None or self.body is not None:
            return str(200 if self.status is None else self.status)
        if self.piece_ms:
            return "pace"
        if self.service_tier is not None:
            return "service_tier"
        if self.batch_s is not None or self.batch_expiry_s is not None:
            return "batch_time"
        return self.mangle or ("price" if self.price_factor is not None else "delay")


@dataclass(frozen=True, slots=True)
class PreparedAnswer:
    """A text that a vendor's models answer with.

    Attributes:
        vendor: a vendor, a wire, or `*`.
        when: words that a request must contain; the answer is given each time. Without words, it
            is given once, to any request.
    """

    vendor: str
    text: str
    when: str = ""


@dataclass(slots=True)
class CallEffects:
    """The effects of faults on a call: delays, and a fault that replaces or mangles the answer.

    Attributes:
        price_factor: factor for the prices that an answer states.
        service_tier: the service tier of the account's project; None if it has none.
        batch_s, batch_expiry_s: duration and expiry, in seconds, of a batch that the call creates;
            None for the usual ones.
    """

    delay_ms: float = 0.0
    piece_ms: float = 0.0
    fault: Fault | None = None
    retry_after_s: float | None = None
    price_factor: float = 1.0
    service_tier: str | None = None
    batch_s: float | None = None
    batch_expiry_s: float | None = None


@dataclass(slots=True)
class _TokenBucket:
    tokens: float
    at_s: float


class Faults:
    """A script of faults that can change while the cloud runs, and the log of its calls.

    >>> faults = Faults(seed=1)
    >>> faults.fail("openai", status=429, share=0.2, headers={"Retry-After": "1"})
    >>> faults.latency("minimax", mean_ms=300, spread_ms=100)
    >>> faults.rate_limit("anthropic", per_s=5, burst=10)
    >>> faults.outage("google", from_s=10, until_s=20)
    >>> len(faults)
    4

    Args:
        seed: seed of the draws for `share`.
        clock: monotonic clock in seconds.
        vendors: ids of compatible vendors that the cloud will be opened with, so that they can have
            faults before.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        clock: Callable[[], float] = time.monotonic,
        vendors: Iterable[str] = (),
    ) -> None:
        self.calls: list[VendorCall] = []
        self._clock = clock
        self._opened_at_s = clock()
        self._seed = seed
        self._compatible: tuple[str, ...] = tuple(vendors)
        self._script: list[tuple[Fault, Random]] = []
        self._answers: list[PreparedAnswer] = []
        self._buckets: dict[int, _TokenBucket] = {}
        self._added_count = 0
        self._lock = threading.Lock()  # a notebook's thread writes, the cloud's thread reads

    @classmethod
    def load(cls, path: str | Path, seed: int = 0, *, vendors: Iterable[str] = ()) -> "Faults":
        """Load a script from a TOML file of `[[fault]]` tables, with the fields of `Fault`.

        Args:
            path: the file.
            seed: seed of the draws for `share`.
            vendors: ids of compatible vendors that the file may also name.

        Raises:
            ValueError: the file is no such script; the message names the fault's place.
        """
        faults = cls(seed, vendors=vendors)
        try:
            tables = tomllib.loads(Path(path).read_text(encoding="utf-8"))["fault"]
        except (tomllib.TOMLDecodeError, KeyError) as error:
            raise ValueError(f"{path} is not a script of faults: {error}") from None
        for place, table in enumerate(tables, start=1):
            try:
                faults.add(Fault(**table))
            except ValueError as error:
                raise ValueError(f"{path}: fault {place}: {describe_error(error)}") from None
        return faults

    def add(self, fault: Fault) -> Fault:
        """Add a fault after the others; the first matching fault with an answer wins.

        Raises:
            ValueError: for an unknown vendor.
        """
        self._find_wires(fault.vendor)
        with self._lock:
            self._added_count += 1
            self._script.append((fault, Random(f"{self._seed}/{self._added_count}")))  # noqa: S311
        return fault

    def add_vendors(self, vendors: Iterable[str]) -> None:
        """Accept faults for the compatible vendors that the cloud is opened with."""
        self._compatible = tuple(dict.fromkeys((*self._compatible, *vendors)))

    def _find_wires(self, name: str) -> frozenset[str]:
        return find_wires(name, self._compatible)

    def fail(self, vendor: str, *, status: int, **options: Any) -> None:
        """Answer with a status, in the vendor's format; `options` are other fields of `Fault`."""
        self.add(Fault(vendor, status=status, **options))

    def latency(self, vendor: str, mean_ms: float, spread_ms: float = 0.0, **options: Any) -> None:
        """Delay calls by `mean_ms` milliseconds, plus or minus `spread_ms`."""
        self.add(Fault(vendor, delay_ms=mean_ms, spread_ms=spread_ms, **options))

    def pace(self, vendor: str, piece_ms: float, **options: Any) -> None:
        """Stream texts at a model's pace: a piece every `piece_ms` milliseconds."""
        self.add(Fault(vendor, piece_ms=piece_ms, **options))

    def mangle(self, vendor: str, how: Mangle, **options: Any) -> None:
        """Mangle answers: `truncate`, `garbage`, `drip`, `hang` or `drop`."""
        self.add(Fault(vendor, mangle=how, **options))

    def rate_limit(self, vendor: str, per_s: float, burst: int = 1, **options: Any) -> None:
        """Limit calls by a token bucket of `per_s` tokens a second and a size of `burst`."""
        self.add(Fault(vendor, rate_per_s=per_s, burst=burst, **options))

    def outage(self, vendor: str, from_s: float = 0.0, until_s: float | None = None) -> None:
        """Answer every call with 503 for a time, in seconds since the cloud was opened."""
        self.add(Fault(vendor, status=503, from_s=from_s, until_s=until_s))

    def refuse_key(self, vendor: str) -> None:
        """Refuse every key from now on, as if the key was revoked."""
        self.add(Fault(vendor, refuse_key=True))

    def price(self, vendor: str, factor: float) -> None:
        """Multiply the prices that the vendor states in its answers."""
        self.add(Fault(vendor, price_factor=factor))

    def project_tier(self, vendor: str, tier: str) -> None:
        """Set the service tier of the account's project, for requests without a tier."""
        self.add(Fault(vendor, service_tier=tier))

    def batch_time(
        self, vendor: str, lasts_s: float | None = None, expires_s: float | None = None
    ) -> None:
        """Set the duration of batches that are created from now on, and when they expire."""
        self.add(Fault(vendor, batch_s=lasts_s, batch_expiry_s=expires_s))

    def say(self, vendor: str, *texts: str) -> None:
        """Have the vendor's models answer with these texts, one after the other, streamed or not.

        Raises:
            ValueError: for an unknown vendor.
        """
        self._find_wires(vendor)
        with self._lock:
            self._answers += [PreparedAnswer(vendor, text) for text in texts]

    def answer(self, vendor: str, when: str, text: str) -> None:
        """Have the vendor's models answer each request that contains the words `when` with a text.

        If several answers fit a request, the earliest is given.

        Raises:
            ValueError: for an unknown vendor, or no words.
        """
        if not when.strip():
            raise ValueError("when must be words of the request")
        self._find_wires(vendor)
        with self._lock:
            self._answers.append(PreparedAnswer(vendor, text, when))

    def take_text(self, vendor: str, prompt: str) -> str | None:
        """Take the prepared text for a prompt; returns None if the model writes its own."""
        with self._lock:
            for place, answer in enumerate(self._answers):
                # Compatible vendors may have been added since the answer was prepared.
                if vendor in self._find_wires(answer.vendor) and answer.when in prompt:
                    if not answer.when:
                        del self._answers[place]
                    return answer.text
        return None

    def clear(self, vendor: str | None = None) -> None:
        """Remove the faults and texts to say, for one vendor or for all; the log stays.

        Raises:
            ValueError: for an unknown vendor.
        """
        wires = self._find_wires("*" if vendor is None else vendor)
        with self._lock:
            self._script = [
                row for row in self._script if not self._find_wires(row[0].vendor) <= wires
            ]
            self._answers = [
                answer for answer in self._answers if not self._find_wires(answer.vendor) <= wires
            ]
            self._buckets.clear()

    def forget_calls(self) -> None:
        """Empty the log."""
        self.calls.clear()

    def __len__(self) -> int:
        return len(self._script)

    def __repr__(self) -> str:
        return f"<Faults: {len(self)} ordered, {len(self.calls)} calls logged>"

    def to_frame(self) -> "pd.DataFrame":
        """Return the log of calls as a table, a row for each call."""
        import pandas as pd

        columns = [column.name for column in fields(VendorCall)]
        return pd.DataFrame([asdict(call) for call in list(self.calls)], columns=columns)

    def list_faults(self) -> list[Fault]:
        """Return the faults that are active, or will be."""
        return [fault for fault, _ in self._script]

    def get_elapsed_s(self) -> float:
        """Return the time since the cloud was opened, in seconds."""
        return self._clock() - self._opened_at_s

    def draw_effects(self, vendor: str, path: str, custom_id: str = "") -> CallEffects:
        """Determine the effects of the faults on a call, and count down limited faults.

        Args:
            vendor: the wire of the call.
            path: the path of the call below the wire's own address.
            custom_id: the custom id of an item of a batch; "" for a call that a client made.
        """
        effects = CallEffects()
        with self._lock:
            for fault, random in list(self._script):
                if (
                    not self._applies_to(fault, vendor, path, custom_id)
                    or random.random() >= fault.share
                ):
                    continue
                if fault.times is not None:
                    fault.times -= 1
                    if fault.times <= 0:
                        self._script = [pair for pair in self._script if pair[0] is not fault]
                spread = random.uniform(-fault.spread_ms, fault.spread_ms)
                effects.delay_ms += max(0.0, fault.delay_ms + spread)
                effects.piece_ms += fault.piece_ms
                if fault.price_factor is not None:
                    effects.price_factor *= fault.price_factor
                effects.service_tier = fault.service_tier or effects.service_tier
                effects.batch_s = effects.batch_s if fault.batch_s is None else fault.batch_s
                if fault.batch_expiry_s is not None:
                    effects.batch_expiry_s = fault.batch_expiry_s
                if fault.rate_per_s is not None:
                    effects.retry_after_s = self._take_token(fault)
                    if effects.retry_after_s is None:
                        continue
                if _replaces_answer(fault):
                    effects.fault = fault
                    break
        return effects

    def _applies_to(self, fault: Fault, vendor: str, path: str, custom_id: str) -> bool:
        if (fault.custom_id_contains is not None) != bool(custom_id):
            return False
        if (fault.custom_id_contains or "") not in custom_id:
            return False
        now_s = self.get_elapsed_s()
        in_time = fault.from_s <= now_s and (fault.until_s is None or now_s < fault.until_s)
        return in_time and vendor in self._find_wires(fault.vendor) and fault.path_contains in path

    def _take_token(self, fault: Fault) -> float | None:
        """Take a token and return None, or return the seconds until the next token."""
        rate, now_s = fault.rate_per_s or 1.0, self._clock()
        bucket = self._buckets.setdefault(id(fault), _TokenBucket(float(fault.burst), now_s))
        bucket.tokens = min(float(fault.burst), bucket.tokens + (now_s - bucket.at_s) * rate)
        bucket.at_s = now_s
        if bucket.tokens >= 1:
            bucket.tokens -= 1
            return None
        return (1 - bucket.tokens) / rate


def describe_error(error: ValueError) -> str:
    """Describe a faulty `Fault` on one line.

    >>> try:
    ...     Fault("openai", share=2)
    ... except ValueError as error:
    ...     print(describe_error(error))
    share: Input should be less than or equal to 1
    """
    if not isinstance(error, ValidationError):
        return str(error)
    rows = error.errors(include_url=False)
    return "; ".join(f"{'.'.join(map(str, row['loc']))}: {row['msg']}" for row in rows)


def _replaces_answer(fault: Fault) -> bool:
    """Check whether a fault replaces or mangles the vendor's answer; others only delay it."""
    has_answer = fault.status is not None or fault.body is not None or fault.mangle is not None
    return has_answer or fault.refuse_key or fault.rate_per_s is not None


def build_retry_headers(wait_s: float) -> dict[str, str]:
    """Build the headers that say when to retry: in seconds, and in milliseconds."""
    return {"retry-after": str(math.ceil(wait_s)), "retry-after-ms": str(math.ceil(wait_s * 1000))}
