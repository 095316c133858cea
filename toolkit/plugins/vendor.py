"""The classes of a vendor's file: the vendor, its models and prices, and access to it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeAlias

from toolkit.contract.choices import Tier
from toolkit.contract.errors import ErrorCode
from toolkit.contract.short_tracebacks import PicklableError
from toolkit.plugins.batches import BatchWire
from toolkit.plugins.bounds import Bound, PictureRule
from toolkit.plugins.flow import Flow
from toolkit.plugins.key_redaction import KeyForms, list_key_forms
from toolkit.plugins.operations import Operation

# The ability of a model whose vendor takes batches of its requests.
BATCHES = "batches"
# The service tier outside the hours at which a vendor's list prices hold.
OFF_PEAK_TIER = "off_peak"


@dataclass(frozen=True, slots=True)
class PriceTier:
    """Prices of all units of a request whose input is longer than `above` tokens."""

    above: int
    prices: Mapping[str, Decimal]


@dataclass(frozen=True, slots=True)
class PriceChange:
    """An announced change of a model's prices.

    Attributes:
        since: first day of the prices, in UTC.
        prices: US dollars per unit, by unit.
        tiers: prices of longer inputs, sorted from the lowest threshold.
    """

    since: date
    prices: Mapping[str, Decimal]
    tiers: tuple[PriceTier, ...] = ()


@dataclass(frozen=True, slots=True)
class Model:
    """A model that a vendor offers for a kind of operation.

    Attributes:
        id: the vendor's name of the model.
        kind: the kind of operation, such as `text`.
        prices: US dollars per unit, by unit; a missing unit has an unknown price.
        tiers: prices of longer inputs, sorted from the lowest threshold.
        changes: announced changes of the prices, the earliest first.
        batch: factor by which the vendor's batch API multiplies the prices; None if it has none.
        service_tiers: factor for the prices of each other service tier, by our name of the tier:
            `flex`, `priority`, or `off_peak` outside the peak hours of the vendor's dialect.
        default: True if requests that name no model use this model.
        quality: quality tier: 1 economy, 2 standard, 3 premium.
        output_limit: maximum output tokens according to the vendor; None if unknown.
        reasons: True if the model may spend output tokens on reasoning without being asked.
        abilities: what a request for text may ask of the model, beyond text: `images`, `tools`,
            `reasoning`, `reasoning_with_tools`, `stop`, `seed`, `top_p`, `confidence`, `batches`.
        pictures: the tokens of a picture by its size; None if the vendor publishes no rule.
        ends: the day on which the vendor shuts the model down; None if no day is announced.
        successor: the model that the vendor recommends instead.
        as_of: the day on which the prices were read, such as `2026-11-20`.
        source: the page from which the prices were read.
        profile_of: id of the base model of which this model is a profile; the profile is chosen
            at call time. The base model has the prices of its dearest profile.
        public: True if the vendor serves the model at a public endpoint. It then never runs at the
            caller's endpoint or in the caller's pod, even if `Vendor.on_endpoint` has its kind.
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
    abilities: frozenset[str] = frozenset()
    pictures: PictureRule | None = None
    ends: date | None = None
    successor: str = ""
    as_of: str = ""
    source: str = ""
    profile_of: str = ""
    public: bool = False

    def has_ended(self, today: date) -> bool:
        """Check whether the vendor has announced to shut the model down on or before this day.

        >>> Model("m", "text", ends=date(2026, 12, 1)).has_ended(date(2026, 11, 30))
        False
        """
        return self.ends is not None and today >= self.ends

    def apply_changes(self, today: date) -> "Model":
        """Return the model at the prices of a day: those of the last change until then, if any.

        >>> change = PriceChange(date(2026, 12, 1), {"input_tokens": Decimal(4)})
        >>> model = Model("m", "text", {"input_tokens": Decimal(2)}, changes=(change,))
        >>> model.apply_changes(date(2026, 12, 1)).prices["input_tokens"]
        Decimal('4')
        """
        changes = [change for change in self.changes if change.since <= today]
        return (
            replace(self, prices=changes[-1].prices, tiers=changes[-1].tiers) if changes else self
        )


@dataclass(frozen=True, slots=True)
class WorkerTime:
    """The maximum billed worker time of an operation at an endpoint.

    Attributes:
        source: the vendor's page that says which times are billed.
        limit_s: maximum execution time in seconds; then the worker ends the work.
        start_s: start-up time in seconds.
        idle_s: time in seconds for which an idle worker waits for more work before it stops.
    """

    source: str
    limit_s: float
    start_s: float
    idle_s: float

    @property
    def max_s(self) -> float:
        """The sum of all three times, in seconds."""
        return self.limit_s + self.start_s + self.idle_s


@dataclass(frozen=True, slots=True)
class WireDialect:
    """The differences of a server from the vendor API (the wire) that it imitates.

    Attributes:
        names: names of request fields by the wire's own names; "" for a field that is not sent.
        extra: fields to add to each request for text.
        model_extra: further fields of requests for text, by model.
        reasoning: the fields of each level of reasoning, instead of `reasoning_effort`. The level
            `unasked` is for requests that leave reasoning to the model.
        json_mode: the strictest way to ask for JSON: `json_schema`, `json_object` or `words`.
        costs: US dollars per unit of each field of the usage that reports the cost.
        upstream: member of an answer that names the host that served it; "" if no member does.
        peak_hours: first and last hours of the day, in UTC, at which list prices hold. Outside of
            them the tier is `off_peak`. Without any hours, list prices hold all day.
        key_header: header that carries the key alone; "" for `Authorization: Bearer`.
        is_original: True if the server takes every field that the wire's own vendor takes.
        tools_extra: fields of requests that offer tools and leave reasoning to the model, by model.
        batches: form of the server's batch API, `openai` or `mistral`; "" if it has none.
        reasoning_member: member of a message that asked for tools in which the vendor wants to
            read the reasoning before the request again; "" if it wants none.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, object] = field(default_factory=dict)
    model_extra: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    reasoning: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    json_mode: str = "json_schema"
    costs: Mapping[str, Decimal] = field(default_factory=dict)
    upstream: str = ""
    peak_hours: Sequence[tuple[int, int]] = ()
    key_header: str = ""
    is_original: bool = False
    tools_extra: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    reasoning_member: str = ""
    batches: str = ""


@dataclass(frozen=True, repr=False)
class Access:
    """The addresses and the secret of one call to a vendor, dropped after the call.

    Attributes:
        base_urls: the vendor's base URLs by name: `api`, and others if it has several hosts.
        secret: the resolved secret; goes into the request's header and nowhere else.
        model: the model that the router chose.
        endpoint: the vendor's id of a serverless endpoint; None if the request names none.
        pod: the vendor's id of a pod; None if the request names none.
        resume: the vendor's id of work that was submitted before a crash.
        tier: the service tier to ask for. The model has a price in it; if the server is the
            vendor's own, a refusal must not be answered by a request in a dearer tier.
        vendor: id of the vendor that is asked: a flow may serve vendors other than its file's.
        compatible: True if the server is not the vendor's own but speaks its wire.
        refusals: notes of request fields that the vendor refused for this connection and model.
            Flows read and extend the set, which lives as long as the process.
        dialect: the vendor's differences from the wire that it speaks.
        pointed: the secret that the connection points to, if `Vendor.sign_in` replaced it; else "".
        place: the part of the world that serves the call, or the path of the project there, if the
            secret names one; else "".
        names: the server's names of models, if they differ from the vendor's.
        tokens: tokens that the vendor granted for the secret, each with the end of its life in
            seconds since the epoch. `sign_in` reads and extends them; they live as long as the
            process, in its memory alone.
    """

    base_urls: Mapping[str, str]
    secret: str
    model: str
    endpoint: str | None = None
    pod: str | None = None
    resume: str | None = None
    tier: Tier = "standard"
    vendor: str = ""
    compatible: bool = False
    refusals: set[str] = field(default_factory=set, compare=False)
    dialect: WireDialect = field(default_factory=WireDialect)
    pointed: str = ""
    place: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    tokens: dict[str, tuple[str, float]] = field(default_factory=dict, compare=False)

    @cached_property
    def key_forms(self) -> KeyForms:
        """The forms in which a text may show the secret (`list_key_forms`)."""
        return list_key_forms(self.secret)

    def url(self, path: str, host: str = "api") -> str:
        """Return the URL of `path` at a host of the vendor, which is named as in `base_urls`."""
        return self.base_urls[host].rstrip("/") + path

    def __repr__(self) -> str:
        return f"Access(model={self.model!r})"


OperationFlow: TypeAlias = Callable[[Any, Access], Flow[Any]]
ProbeFlow: TypeAlias = Callable[[Access], Flow[Sequence[str] | None]]
SignInFlow: TypeAlias = Callable[[Access], Flow[Access]]


@dataclass(frozen=True, slots=True)
class Vendor:
    """A vendor: everything that the rest of the toolkit knows about it.

    Attributes:
        id: the connection id, a lowercase name.
        label: the specification's label, such as `V4`; None for third parties.
        variable: the conventional environment variable of the vendor's key.
        base_urls: default base URLs by name; settings may change each.
        operations: the flow that performs each kind of operation.
        infrastructure: the flow for each kind of request on resources of a GPU cloud.
        models: the models that the vendor offers, with list prices.
        bounds: the most units that an operation can be billed, by kind of operation. Models of a
            kind without a bound cannot be used under a budget.
        on_endpoint: kinds of operation that run at an endpoint of the caller's, except for public
            models. Such requests need `provider` and `endpoint_id`.
        in_pod: kinds of operation that can also run in a pod of the caller's.
        endpoint_time: maximum billed worker time of an operation at an endpoint of the caller's.
            If it is None, endpoints cannot be used under a budget.
        telemetry_name: the vendor's name in OpenTelemetry, if it differs from the id.
        sign_in: flow that turns the access of a connection into the access of a call, if the secret
            is more than a key: JSON with an address, or an account that is granted tokens. Nothing
            that it sends is billed.
        probe: flow that sends a free request to check whether the vendor accepts the key. It
            returns the names of the vendor's models, or None if the request does not list them.
        name_at: function of an address and a model that returns the model's id at the address.
        wire: id of the vendor whose wire this vendor speaks, if it is another vendor's. The loader
            adds that vendor's flows, and the sandbox serves this vendor if it knows the wire.
        dialect: the vendor's differences from that wire.
        batch: the vendor's batch API for texts; None if it has none.
        is_local: True if the server is the caller's own. It needs no key, it lists its models
            itself, and calls cost what its default model costs unless the operator sets prices.
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
    sign_in: SignInFlow | None = None
    probe: ProbeFlow | None = None
    telemetry_name: str | None = None
    name_at: Callable[[str, str], str] | None = None
    wire: str = ""
    dialect: WireDialect = field(default_factory=WireDialect)
    batch: BatchWire | None = None
    is_local: bool = False

    def serves(
        self, model: Model, *, pinned: bool = False, endpoint: bool = False, pod: bool = False
    ) -> bool:
        """Check whether the vendor can run a model at the endpoint or pod of a request, or without.

        A public model runs at neither. A kind of `on_endpoint` needs an endpoint of this vendor.

        Args:
            model: a model of the requested kind of operation.
            pinned: whether the request names this vendor.
            endpoint: whether the request names an endpoint.
            pod: whether the request names a pod.
        """
        if model.public:
            return not (pinned and (endpoint or pod))
        if pod and self.infrastructure and model.kind not in self.in_pod:
            return False
        return model.kind not in self.on_endpoint or (pinned and endpoint)

    def runs_at_named_place(self, model: Model | None) -> bool:
        """Check whether a model runs at the endpoint or in the pod that a request names.

        A public model never does, nor a model of a vendor without `infrastructure`.
        """
        return bool(self.infrastructure) and not (model is not None and model.public)

    def find_bound_source(self, model: Model) -> str | None:
        """Return the page that proves the cost bound of a model's calls; None without a bound."""
        if model.kind in self.on_endpoint and not model.public:
            return self.endpoint_time.source if self.endpoint_time is not None else None
        return next(
            (b.source for operation, b in self.bounds.items() if operation.kind == model.kind), None
        )

    def find_default_model(self, kind: str) -> Model | None:
        """Return the default model for a kind of operation, or else the first; None without any."""
        models = [m for m in self.models if m.kind == kind and not m.profile_of]
        return next((m for m in models if m.default), models[0] if models else None)


class ProviderError(PicklableError, Exception):
    """A vendor's failure, already translated into one of the toolkit's error codes.

    A vendor's flow raises it. The driver decides from `code` and `retryable` whether to retry,
    fall back or give up.
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
