"""The operator's settings: `TOOLKIT_…` variables and `toolkit.toml`, read by each engine."""

import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.review_thresholds import DEFAULT_THRESHOLDS, ReviewThresholds
from toolkit.setting_types import (
    ACCOUNT_JOB_PLACES,
    ADMISSION,
    BODY_SIZE,
    CALL_PLACES,
    CALL_RATE,
    CALL_TIME,
    JOB_PLACES,
    QUEUE_LENGTH,
    REPLY_SIZE,
    REQUEST_RATE,
    REQUEST_SHAPE,
    REQUEST_START,
    SIGNUP_RATE,
    STEP_MEMORY,
    STEP_TIME,
    STORAGE_QUOTA,
    WORKFLOW_SIZE,
    ArtifactUrl,
    CorsOrigin,
    DaskAddress,
    DatabaseUrl,
    EndpointUrl,
    TlsFiles,
    TrustedNetwork,
)

Tier = Literal["economy", "standard", "premium"]
TIERS: dict[Tier, int] = {"economy": 1, "standard": 2, "premium": 3}
SANDBOX_HOST = "sandbox.invalid"  # never leaves the process (RFC 6761 keeps the name free)
SANDBOX_URL = f"http://{SANDBOX_HOST}"


class Timeouts(BaseModel):
    """Timeouts of one call, in seconds; those not given are as elsewhere.

    Attributes:
        connect_s: until the connection is established.
        first_byte_s: until the answer begins.
        total_s: until its last byte.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    connect_s: float | None = Field(default=None, gt=0)
    first_byte_s: float | None = Field(default=None, gt=0)
    total_s: float | None = Field(default=None, gt=0)


def _reject_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("is no price: give US dollars, 0 for what costs nothing")
    return value


PerMillion = Annotated[
    Decimal, BeforeValidator(_reject_bool), Field(ge=0, le=1_000_000, allow_inf_nan=False)
]
ModelName = Annotated[str, Field(min_length=1, max_length=200)]
EVERY_MODEL = "*"


class TokenPrices(BaseModel):
    """Prices of a model's tokens, in US dollars per million, as its operator says.

    Attributes:
        input_tokens: of what is sent; 0 for a server of one's own.
        output_tokens: of what it answers.
        cached_input_tokens: price of input read from the server's prompt cache; by default, the
            price of other input.
        cache_write_tokens: price of input written to that cache; unknown by default.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    input_tokens: PerMillion
    output_tokens: PerMillion
    cached_input_tokens: PerMillion | None = None
    cache_write_tokens: PerMillion | None = None


class VendorSettings(BaseModel):
    """Settings of how one vendor is reached.

    Attributes:
        base_urls: its hosts by name, over the vendor's own; `api` is the main one.
        models: by kind of operation, the one model to ask for, or a model for each tier
            (`economy`, `standard`, `premium`).
        prices: of text models, over the list prices; `"*"` is for every model without its own.
        timeouts: of its calls, over those of capabilities.
        max_concurrent_calls: of one connection.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    base_urls: dict[str, str] = Field(default_factory=dict)
    models: dict[str, str | dict[Tier, str]] = Field(default_factory=dict)
    prices: dict[ModelName, TokenPrices] = Field(default_factory=dict)
    timeouts: Timeouts = Timeouts()
    max_concurrent_calls: int | None = Field(default=None, ge=1)
    requests_per_minute: Annotated[float | None, CALL_RATE] = Field(
        default=None, gt=0, allow_inf_nan=False, description="calls per minute"
    )
    tokens_per_minute: Annotated[float | None, CALL_RATE] = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="tokens per minute, of input and output",
    )

    def find_prices(self, model: str) -> TokenPrices | None:
        """Find the operator's prices of a text model; none where list prices hold."""
        return self.prices.get(model) or self.prices.get(EVERY_MODEL)


class ModelUse(BaseModel):
    """Settings of the language model that the engine itself asks, to plan or to judge.

    Attributes:
        provider: whom it asks, by a provider's id or a connection's (`prv_…`); by default the
            provider that the router chooses for texts.
        deadline_s: what takes longer is not waited for, in seconds.
        max_tokens: the most that an answer may have, reasoning included; a planner's answer that is
            cut off there is asked for once more with twice as many.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    provider: str | None = Field(default=None, min_length=1, max_length=64)
    deadline_s: float = Field(default=60.0, gt=0, le=3_600)
    max_tokens: int = Field(default=2_048, ge=256, le=16_384)


class SettingsError(RequestError, ValueError):
    """An error that names each setting that cannot be used."""


class Settings(BaseSettings):
    """All settings of an engine, given when it is opened.

    What is given in code wins over `TOOLKIT_…` variables, and those over `toolkit.toml` in the
    working directory.

    Attributes:
        data_dir: the directory of all data.
        durability: `full` has each commit on the disk before it is acknowledged.
        artifact_url: where artifacts' bytes go: `s3://bucket/prefix` (the extra `s3`), or another
            URL of fsspec's (the extra `remote`); beside the database if not given.
        sandbox: simulated vendors: no keys, no bills.
        vendors: how each is reached, by its id.
        encyclopedia_url: whose articles `research.gather` reads.
        zim_path: a ZIM file to read them from instead.
        max_price_age_days: after which `toolkit doctor` says that list prices are old.
        lease_s: how long work stays with a process that does not renew its claim on it.
        first_byte_timeout_s: seconds until a vendor's answer begins; limited by `timeout_s` and
            `total_s` alone by default.
        connect_timeout_s: until a connection to a vendor is established.
        retry_base_s: the longest first wait between tries of a call; it doubles each time.
        retry_cap_s: a vendor that asks for a longer wait is not tried again, but the next one.
        breaker_cooldown_s: the first wait of an open breaker; it doubles, up to a minute.

    >>> Settings(data_dir="elsewhere").max_nodes
    1000
    """

    model_config = SettingsConfigDict(
        env_prefix="TOOLKIT_",
        env_nested_delimiter="__",
        extra="ignore",
        frozen=True,
        toml_file="toolkit.toml",
    )

    data_dir: Path = Path(".toolkit")
    durability: Literal["normal", "full"] = "normal"
    database: DatabaseUrl | None = Field(
        default=None,
        description="the database of PostgreSQL that has the rows, as `postgresql://user@host/name`"
        " (the extra `postgres`), instead of one in `data_dir`; its password may also be in"
        " PGPASSWORD or a password file, as libpq has them",
    )
    database_wait_s: float = Field(
        default=60.0,
        ge=0,
        description="how long an engine that starts waits for PostgreSQL if that is away, in"
        " seconds",
    )
    artifact_url: ArtifactUrl | None = None
    artifact_endpoint_url: EndpointUrl | None = Field(
        default=None, description="of a service that speaks S3, such as MinIO, for s3:// artifacts"
    )
    artifact_reads: Literal["proxied", "presigned"] = Field(
        default="proxied",
        description="who sends artifacts' bytes: a server itself, or their storage by a signed URL",
    )
    artifact_link_s: int = Field(
        default=300, ge=1, le=604_800, description="how long a signed URL of an artifact holds"
    )
    sandbox: bool = False
    vendors: dict[str, VendorSettings] = Field(default_factory=dict)
    timeouts: dict[str, Timeouts] = Field(
        default_factory=dict, description="by capability, such as `image.generate`"
    )
    encyclopedia_url: str = "https://en.wikipedia.org"
    zim_path: Path | None = None
    review: ReviewThresholds = Field(
        default=DEFAULT_THRESHOLDS, description="of the checks that review a task's results"
    )
    take_up: bool | None = Field(
        default=None, description="false takes up nothing that was left; true even what is a copy's"
    )
    contact: str = Field(
        default="", max_length=200, description="email or page of the operator, for public services"
    )
    allow_env: frozenset[str] = Field(
        default=frozenset(), description="variables that a server's callers may point to"
    )
    allow_secrets: frozenset[str] = Field(
        default=frozenset(), description="names in AWS Secrets Manager that they may point to"
    )

    closed_signup: bool = Field(default=False, description="accounts are the operator's to make")
    signups_per_hour: Annotated[int, SIGNUP_RATE] = Field(
        default=10, ge=1, description="new accounts per hour"
    )
    trust_proxy: frozenset[TrustedNetwork] = Field(
        default=frozenset(),
        description="addresses or networks of proxies that are believed whom they speak for",
    )
    cors_origins: frozenset[CorsOrigin] = Field(
        default=frozenset(), description="web pages that a browser lets ask, such as a dashboard"
    )

    rate_limit_per_s: Annotated[float, REQUEST_RATE] = Field(
        default=50.0, gt=0, description="requests per second"
    )
    rate_limit_burst: Annotated[int, REQUEST_RATE] = Field(
        default=200, ge=1, description="requests at once after a pause"
    )
    max_admitting: Annotated[int, ADMISSION] = Field(
        default=512,
        ge=1,
        description="requests for work that are being accepted at once; one account"
        " has at most half of them",
    )
    max_queued: Annotated[int, QUEUE_LENGTH] = Field(
        default=10_000, ge=1, description="runs, jobs, workflows and tasks that have not ended"
    )
    max_stored_bytes: Annotated[int, STORAGE_QUOTA] = Field(
        default=50 * 1024**3, ge=1, description="bytes of all artifacts and records"
    )

    planner: Literal["rules", "auto", "llm"] = Field(
        default="auto", description="who plans where a task's constraints do not say"
    )
    reviewer: Literal["checks", "auto", "judge"] = Field(
        default="auto", description="who reviews where a task's constraints do not say"
    )
    planning: ModelUse = Field(default=ModelUse(), description="of the language model that plans")
    judging: ModelUse = Field(
        default=ModelUse(max_tokens=400),
        description="of the language model that judges; its provider is the planner's by default",
    )
    max_nodes: Annotated[int, WORKFLOW_SIZE] = Field(default=1_000, ge=1, description="nodes")
    max_edges: Annotated[int, WORKFLOW_SIZE] = Field(default=10_000, ge=1, description="edges")
    max_price_age_days: int = Field(default=120, ge=0)
    body_limit_bytes: Annotated[int, BODY_SIZE] = Field(
        default=1024 * 1024, ge=1024, description="bytes of a body that is not an upload"
    )
    upload_limit_bytes: Annotated[int, BODY_SIZE] = Field(
        default=50 * 1024 * 1024, ge=1024, description="bytes of an uploaded artifact"
    )
    reply_limit_bytes: Annotated[int, REPLY_SIZE] = Field(
        default=64 * 1024 * 1024,
        ge=1024,
        description="bytes of a vendor's answer, as received and as unpacked",
    )
    max_text: Annotated[int, REQUEST_SHAPE] = Field(
        default=500_000, ge=1, description="characters of a text in a body"
    )
    max_items: Annotated[int, REQUEST_SHAPE] = Field(
        default=50_000, ge=1, description="items of a list in a body"
    )
    max_members: Annotated[int, REQUEST_SHAPE] = Field(
        default=1_000, ge=1, description="members of an object in a body"
    )
    max_values: Annotated[int, REQUEST_SHAPE] = Field(
        default=30_000, ge=1, description="values of all lists and objects in a body"
    )
    target_limit_bytes: Annotated[int, REQUEST_SHAPE] = Field(
        default=8 * 1024, ge=256, description="bytes of a path with its query"
    )
    head_limit_bytes: Annotated[int, REQUEST_SHAPE] = Field(
        default=32 * 1024, ge=1024, description="bytes of all headers"
    )
    max_headers: Annotated[int, REQUEST_SHAPE] = Field(default=100, ge=10, description="headers")
    head_timeout_s: Annotated[float, REQUEST_START] = Field(
        default=30.0, gt=0, description="seconds until a request begins"
    )
    body_timeout_s: Annotated[float, REQUEST_SHAPE] = Field(
        default=30.0,
        gt=0,
        description="seconds until a body has arrived, and one more for each 16 KiB",
    )

    lease_s: float = Field(default=15.0, gt=0)
    max_concurrent_jobs: Annotated[int, JOB_PLACES] = Field(
        default=256, ge=1, description="jobs at once"
    )
    max_concurrent_jobs_per_account: Annotated[int, ACCOUNT_JOB_PLACES] = Field(
        default=128, ge=1, description="jobs at once"
    )
    cpu_workers: int | None = Field(
        default=None,
        ge=1,
        description="number of CPU steps at once, by default as many as cores, and at least 2; one"
        " more worker process is for an account that runs no step",
    )
    cpu_timeout_s: Annotated[float, STEP_TIME] = Field(
        default=60.0, gt=0, description="seconds in a worker process"
    )
    cpu_memory_bytes: Annotated[int | None, STEP_MEMORY] = Field(
        default=4 * 1024**3, ge=256 * 1024**2, description="bytes of memory of a worker process"
    )
    dispatch: DaskAddress | None = Field(
        default=None,
        description="the Dask cluster that does CPU steps, as `dask://host:port`, or `tls://…` for"
        " encrypted connections (the extra `dask`); worker processes of this machine if not given",
    )
    dispatch_tls: TlsFiles | None = Field(
        default=None,
        description="paths of the certificates for a cluster that encrypts: `ca_file`, `cert_file`,"
        " `key_file`; those of Dask's own configuration if not given",
    )
    scheduler_wait_s: float = Field(
        default=60.0, ge=0, description="a step, or a batch, waits this long for Dask's scheduler"
    )
    worker_wait_s: float = Field(
        default=600.0,
        ge=0,
        description="they wait this long for a worker of it that has what they need, such as a GPU",
    )
    timeout_s: Annotated[float, CALL_TIME] = Field(
        default=120.0, gt=0, description="seconds of a call"
    )
    # A default of its own would cut a longer `total_s` that an operator gives a slow server.
    first_byte_timeout_s: float | None = Field(default=None, gt=0)
    connect_timeout_s: float = Field(default=5.0, gt=0)
    retries: int = Field(default=2, ge=0, le=5, description="of one vendor call, inside a job")
    retry_base_s: float = Field(default=0.5, ge=0)
    retry_cap_s: float = Field(default=30.0, ge=0)
    connection_test_s: float = Field(
        default=3.0, ge=0, description="that a new connection is tested for; 0 tests none"
    )
    breaker_failures: int = Field(default=5, ge=1, description="in a row, that open a breaker")
    breaker_cooldown_s: float = Field(default=5.0, gt=0)
    max_cooldown_wait_s: float = Field(
        default=60.0, ge=0, description="a job waits this long for connections that cool down"
    )
    max_concurrent_calls: Annotated[int, CALL_PLACES] = Field(
        default=16, ge=1, description="calls at once"
    )

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise SettingsError(
                ErrorCode.INVALID_REQUEST,
                "The settings (`toolkit.toml`, TOOLKIT_ variables) cannot be used.",
                details=_list_faults(error),
            ) from None
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(
                ErrorCode.INVALID_REQUEST, f"`toolkit.toml` is not TOML: {error}."
            ) from None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic names it
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic names it
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources of settings, the first of which wins."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

    def names_engine(self) -> bool:
        """Tell whether an embedded engine is configured: where its data is, or the sandbox."""
        return self.sandbox or bool({"data_dir", "database"} & self.model_fields_set)

    def get_database_url(self) -> str | None:
        """Return the address of the database, with its password if it has one; none for SQLite."""
        return None if self.database is None else self.database.get_secret_value()

    def get_max_concurrent_calls(self, vendor_id: str) -> int:
        """Return the number of calls a connection to a vendor may have under way."""
        own = self.vendors.get(vendor_id)
        return (own.max_concurrent_calls if own else None) or self.max_concurrent_calls

    def resolve_timeouts(self, vendor_id: str, capability_id: str = "") -> Timeouts:
        """Resolve the timeouts of a call: the vendor's, else the capability's, else all."""
        everyones = Timeouts(
            connect_s=self.connect_timeout_s,
            first_byte_s=self.first_byte_timeout_s,
            total_s=self.timeout_s,
        )
        capabilitys = self.timeouts.get(capability_id)
        vendors = self.vendors.get(vendor_id)
        update: dict[str, float] = {}
        for given in (capabilitys, vendors.timeouts if vendors else None):
            update |= given.model_dump(exclude_none=True) if given else {}
        return everyones.model_copy(update=update)


def _list_faults(error: ValidationError) -> list[Detail]:
    """List every fault, without the value: it may be a secret in the wrong place."""
    return [
        Detail(
            ".".join(str(part) for part in fault["loc"] if part != "[key]"),
            fault["msg"].removeprefix("Value error, "),
        )
        for fault in error.errors(include_url=False, include_input=False, include_context=False)
    ]
