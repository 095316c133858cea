"""The declarations of a vendor's file: its operations, models and conventional variable."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Any, TypeAlias

from toolkit.contract.errors import ErrorCode
from toolkit.contract.pickled_errors import PicklableError
from toolkit.plugins.bounds import Bound
from toolkit.plugins.flow import Flow
from toolkit.plugins.operations import Operation


@dataclass(frozen=True, slots=True)
class PriceTier:
    """The prices of a request whose input is longer than `above` tokens, for all of its units."""

    above: int
    prices: Mapping[str, Decimal]


@dataclass(frozen=True, slots=True)
class PriceChange:
    """The prices of a model from a day on, as its vendor announced them.

    Attributes:
        since: first day of the prices, by UTC.
        prices: US dollars per one unit, by unit.
        tiers: prices of longer inputs, the shortest first.
    """

    since: date
    prices: Mapping[str, Decimal]
    tiers: tuple[PriceTier, ...] = ()


@dataclass(frozen=True, slots=True)
class Model:
    """A model that a vendor offers for a kind of operation.

    Attributes:
        id: the vendor's name of it.
        kind: the kind of operation, such as `text`.
        prices: US dollars per one unit, by unit; a unit that is missing has an unknown price.
        tiers: what longer inputs cost instead, the shortest first.
        changes: announced changes of the prices, the earliest first.
        batch: the share of these prices that the vendor's batch API takes; none without one.
        service_tiers: the share of these prices that each other service tier takes, by our name
            of the tier: `flex` or `priority`.
        default: whether it is used when a request names none.
        quality: its tier: 1 economy, 2 standard, 3 premium.
        output_limit: the most tokens that it can answer with, by its vendor; none if unknown.
        reasons: whether it may spend output tokens on reasoning that was not asked for.
        ends: the day on which its vendor shuts it down, where that is announced.
        successor: the model that its vendor names instead.
        as_of: the day on which the prices were read, such as `2026-11-20`.
        source: where they were read.
        profile_of: the model that this is one way to call, which is chosen as it is called; that
            model has the prices of its dearest one.
        public: whether its vendor serves it at a public endpoint, so that it runs there and at
            no place of the caller's, although its kind is one of `Vendor.on_endpoint`.
    """

    id: str
    kind: str
    prices: Mapping[str, Decimal] = field(default_factory=dict)
    tiers: tuple[PriceTier, ...] = ()
    changes: tuple[PriceChange, ...] = ()
    batch: Decimal | None = None
    service_tiers: Mapping[str, Decimal] = field(default_factory=dict)
    default: bool = False
    quality: int = 1
    output_limit: int | None = None
    reasons: bool = False
    ends: date | None = None
    successor: str = ""
    as_of: str = ""
    source: str = ""
    profile_of: str = ""
    public: bool = False

    def has_ended(self, today: date) -> bool:
        """Tell whether its vendor has shut it down by this day.

        >>> Model("m", "text", ends=date(2026, 12, 1)).has_ended(date(2026, 11, 30))
        False
        """
        return self.ends is not None and today >= self.ends

    def apply_changes(self, today: date) -> "Model":
        """Return the model at the prices of a day.

        >>> change = PriceChange(date(2026, 12, 1), {"input_tokens": Decimal(4)})
        >>> model = Model("m", "text", {"input_tokens": Decimal(2)}, changes=(change,))
        >>> model.apply_changes(date(2026, 12, 1)).prices["input_tokens"]
        Decimal('4')
        """
        begun = [change for change in self.changes if change.since <= today]
        return replace(self, prices=begun[-1].prices, tiers=begun[-1].tiers) if begun else self


@dataclass(frozen=True, slots=True)
class WorkerTime:
    """The seconds that a worker at an endpoint is billed for one operation, at most.

    Attributes:
        source: where the vendor says what is billed.
        limit_s: after which it ends the work.
        start_s: for starting up.
        idle_s: for waiting for more work, before it stops.
    """

    source: str
    limit_s: float
    start_s: float
    idle_s: float

    @property
    def max_s(self) -> float:
        """The sum of all of them."""
        return self.limit_s + self.start_s + self.idle_s


@dataclass(frozen=True, slots=True, repr=False)
class Access:
    """The means by which a flow reaches its vendor; made at call time and dropped after it.

    Attributes:
        base_urls: the vendor's hosts by name (`api`, and more where it has several).
        secret: the resolved secret; goes into the request's header and nowhere else.
        model: the model the router chose.
        endpoint: the vendor's own id of a serverless endpoint, where one was asked for.
        pod: the vendor's own id of a pod, where one was asked for.
        resume: the vendor's id of work that was submitted before a crash.
        vendor: the id of the vendor that is asked: a flow may serve vendors other than its file's.
        compatible: whether another server than the vendor's own is called, by its wire.
        refusals: what it is known to refuse of this connection's requests for the model, as long
            as the process lives; a flow reads it and adds to it.
    """

    base_urls: Mapping[str, str]
    secret: str
    model: str
    endpoint: str | None = None
    pod: str | None = None
    resume: str | None = None
    vendor: str = ""
    compatible: bool = False
    refusals: set[str] = field(default_factory=set, compare=False)

    def url(self, path: str, host: str = "api") -> str:
        """Return the address of `path` at one of the vendor's hosts."""
        return self.base_urls[host].rstrip("/") + path

    def __repr__(self) -> str:
        return f"Access(model={self.model!r})"


OperationFlow: TypeAlias = Callable[[Any, Access], Flow[Any]]
ProbeFlow: TypeAlias = Callable[[Access], Flow[Sequence[str] | None]]


@dataclass(frozen=True, slots=True)
class Vendor:
    """A vendor: everything that the rest of the toolkit knows about it.

    Attributes:
        id: the connection id, the lowercase name.
        label: the specification's label, `V4`; none for third parties.
        variable: the conventional environment variable of its key.
        base_urls: default hosts by name; settings may change each.
        operations: the flow that performs each kind of operation.
        models: what it offers, with list prices.
        bounds: the most units that an operation can be billed, by kind of operation; without one
            its models cannot be used under a budget.
        on_endpoint: the kinds of operation that it performs at an endpoint of the caller's,
            which they need `provider` and `endpoint_id` for; its public models apart.
        in_pod: the kinds of operation that it can also perform in a pod of the caller's.
        endpoint_time: the most seconds of a worker that one operation at an endpoint of the
            caller's is billed; without it, none can be used under a budget.
        telemetry_name: what OpenTelemetry calls it, where that is not its id.
        probe: asks the vendor for something free, to find out whether it takes the key; answers
            the names of its models, where that is what it asked for.
        name_at: the id by which a model is called at an address, where the address decides that.
        wire: the id of the vendor whose wire it speaks, where that is another's: it gets that
            vendor's flows as it is loaded, and the sandbox serves it where it knows the wire.
    """

    id: str
    title: str
    variable: str
    base_urls: Mapping[str, str]
    operations: Mapping[type[Operation[Any]], OperationFlow]
    models: tuple[Model, ...]
    bounds: Mapping[type[Operation[Any]], Bound] = field(default_factory=dict)
    label: str | None = None
    infrastructure: Mapping[str, OperationFlow] = field(default_factory=dict)
    on_endpoint: frozenset[str] = frozenset()
    in_pod: frozenset[str] = frozenset()
    endpoint_time: WorkerTime | None = None
    probe: ProbeFlow | None = None
    telemetry_name: str | None = None
    name_at: Callable[[str, str], str] | None = None
    wire: str = ""

    def serves(
        self, model: Model, *, pinned: bool = False, endpoint: bool = False, pod: bool = False
    ) -> bool:
        """Tell whether it can be asked for a model as a request stands.

        Args:
            model: of the kind of operation that is asked for.
            pinned: whether the request names this vendor.
            endpoint: whether it names an endpoint.
            pod: whether it names a pod.
        """
        if model.public:
            return not (pinned and (endpoint or pod))
        if pod and self.infrastructure and model.kind not in self.in_pod:
            return False
        return model.kind not in self.on_endpoint or (pinned and endpoint)

    def runs_at_named_place(self, model: Model | None) -> bool:
        """Tell whether a model runs at the endpoint or in the pod that a request names."""
        return bool(self.infrastructure) and not (model is not None and model.public)

    def find_bound_source(self, model: Model) -> str | None:
        """Return the source of the bound on a model's calls, if one is declared."""
        if model.kind in self.on_endpoint and not model.public:
            return self.endpoint_time.source if self.endpoint_time is not None else None
        return next((b.source for of, b in self.bounds.items() if of.kind == model.kind), None)

    def find_default_model(self, kind: str) -> Model | None:
        """Return the default model for a kind of operation, or the only one there is."""
        offered = [m for m in self.models if m.kind == kind and not m.profile_of]
        return next((m for m in offered if m.default), offered[0] if offered else None)


class ProviderError(PicklableError, Exception):
    """A vendor's failure, already translated into one of our codes.

    Raised inside a vendor's flow; the driver decides from `code` and `retryable` whether to try
    again, fall back or give up.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        retryable: bool | None = None,
        retry_after: float | None = None,
        status: int | None = None,
        vendor_request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = code.retryable if retryable is None else retryable
        self.retry_after = retry_after
        self.status = status
        self.vendor_request_id = vendor_request_id
