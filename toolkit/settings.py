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
    """Timeouts of a call in seconds; a timeout that is not given has its general value.

    Attributes:
        connect_s: time to connect.
        first_byte_s: time until the answer begins.
        total_s: time until the last byte of the answer.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    connect_s: float | None = Field(default=None, gt=0)
    first_byte_s: float | None = Field(default=None, gt=0)
    total_s: float | None = Field(default=None, gt=0)


def _reject_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("is not a price: use US dollars, and 0 if there is no charge")
    return value


PerMillion = Annotated[
    Decimal, BeforeValidator(_reject_bool), Field(ge=0, le=1_000_000, allow_inf_nan=False)
]
ModelName = Annotated[str, Field(min_length=1, max_length=200)]
EVERY_MODEL = "*"


class TokenPrices(BaseModel):
    """An operator's prices of a model's tokens, in US dollars per million.

    Attributes:
        input_tokens: price of input; 0 for a server of your own.
        output_tokens: price of output.
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
    """Settings of the calls to one vendor.

    Attributes:
        base_urls: base URLs by name, instead of the vendor's own; `api` is the main URL.
        models: model by kind of operation, or a model for each tier (`economy`, `standard`,
            `premium`).
        prices: prices of text models, instead of list prices; `"*"` is for all other models.
        timeouts: timeouts of its calls, which win over the timeouts of capabilities.
        max_concurrent_calls: maximum number of calls at once of a connection, instead of the
            general setting.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    base_urls: dict[str, str] = Field(default_factory=dict)
    models: dict[str, str | dict[Tier, str]] = Field(default_factory=dict)
    prices: dict[ModelName, TokenPrices] = Field(default_factory=dict)
    timeouts: Timeouts = Timeouts()
    max_concurrent_calls: int | None = Field(default=None, ge=1)
    requests_per_minute: Annotated[float | None, CALL_RATE] = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="maximum number of calls of a connection per minute",
    )
    tokens_per_minute: Annotated[float | None, CALL_RATE] = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="maximum number of input and output tokens of a connection per minute",
    )

    def find_prices(self, model: str) -> TokenPrices | None:
        """Return the operator's prices of a text model, or None if list prices apply."""
        return self.prices.get(model) or self.prices.get(EVERY_MODEL)


class ModelUse(BaseModel):
    """Settings of the language model that plans or judges.

    Attributes:
        provider: id of a provider or connection (`prv_…`); by default the provider that the router
            chooses for texts.
        deadline_s: maximum time of an answer, in seconds.
        max_tokens: maximum number of tokens of an answer, reasoning included. An answer of the
            planner that is cut off there is requested again with twice as many.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    provider: str | None = Field(default=None, min_length=1, max_length=64)
    deadline_s: float = Field(default=60.0, gt=0, le=3_600)
    max_tokens: int = Field(default=2_048, ge=256, le=16_384)


class ReviewSettings(BaseModel):
    """Settings of the review of a task's results.

    Attributes:
        pass_score: minimum score, from 0 to 1, that passes if nothing blocks.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    pass_score: float = Field(default=0.6, ge=0, le=1)


class SettingsError(RequestError, ValueError):
    """An error that names each setting that cannot be used."""


class Settings(BaseSettings):
    """All settings of an engine, read when it opens.

    Arguments win over `TOOLKIT_…` variables, and those over `toolkit.toml` in the working
    directory.

    Attributes:
        data_dir: directory of all data.
        durability: `full` waits until each commit is on the disk before it is acknowledged.
        artifact_url: place of artifacts: `s3://bucket/prefix` (the extra `s3`), or another URL of
            fsspec (the extra `remote`); next to the database by default.
        sandbox: whether simulated vendors answer, without keys and without bills.
        vendors: settings of vendors, by id.
        encyclopedia_url: address of the encyclopedia that `research.gather` reads.
        zim_path: ZIM file that `research.gather` reads instead.
        max_price_age_days: age in days at which `toolkit doctor` reports old list prices.
        lease_s: seconds until other processes may take over the work of a process that does not
            renew its lease.
        first_byte_timeout_s: seconds until a vendor's answer begins; by default only `timeout_s`
            and `total_s` limit it.
        connect_timeout_s: seconds to connect to a vendor.
        retry_base_s: maximum wait before the first retry of a call, in seconds; it doubles with
            each attempt.
        retry_cap_s: longest wait for a vendor, in seconds; if a vendor asks for more, the job goes
            to the next provider.
        breaker_cooldown_s: first wait of an open circuit breaker, in seconds; it doubles up to 60.

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
        description="address of a PostgreSQL database for all rows, as `postgresql://user@host/name`"
        " (the extra `postgres`); its password may also be in PGPASSWORD or in a file of libpq",
    )
    database_wait_s: float = Field(
        default=60.0,
        ge=0,
        description="maximum wait for PostgreSQL when an engine starts, in seconds",
    )
    artifact_url: ArtifactUrl | None = None
    artifact_endpoint_url: EndpointUrl | None = Field(
        default=None, description="address of an S3 service such as MinIO, for s3:// artifacts"
    )
    artifact_reads: Literal["proxied", "presigned"] = Field(
        default="proxied",
        description="`proxied` sends the bytes of artifacts from the server; `presigned` redirects"
        " to a signed URL",
    )
    artifact_link_s: int = Field(
        default=300, ge=1, le=604_800, description="lifetime of a signed URL, in seconds"
    )
    sandbox: bool = False
    vendors: dict[str, VendorSettings] = Field(default_factory=dict)
    timeouts: dict[str, Timeouts] = Field(
        default_factory=dict, description="timeouts by capability, such as `image.generate`"
    )
    encyclopedia_url: str = "https://en.wikipedia.org"
    zim_path: Path | None = None
    review: ReviewSettings = Field(
        default=ReviewSettings(), description="settings of the review of tasks' results"
    )
    take_up: bool | None = Field(
        default=None,
        description="False leaves unfinished work alone; True resumes it even if the directory is a"
        " copy",
    )
    contact: str = Field(
        default="",
        max_length=200,
        description="email address or page of the operator, sent to public services",
    )
    allow_env: frozenset[str] = Field(
        default=frozenset(),
        description="environment variables that callers of a server may point to",
    )
    allow_secrets: frozenset[str] = Field(
        default=frozenset(), description="names in AWS Secrets Manager that callers may point to"
    )

    closed_signup: bool = Field(
        default=False, description="whether only the operator can create accounts"
    )
    signups_per_hour: Annotated[int, SIGNUP_RATE] = Field(
        default=10, ge=1, description="maximum number of new accounts of a network address per hour"
    )
    trust_proxy: frozenset[TrustedNetwork] = Field(
        default=frozenset(),
        description="addresses or networks of reverse proxies whose X-Forwarded-For header is"
        " trusted",
    )
    cors_origins: frozenset[CorsOrigin] = Field(
        default=frozenset(),
        description="origins of web pages that may call the server from a browser",
    )

    rate_limit_per_s: Annotated[float, REQUEST_RATE] = Field(
        default=50.0, gt=0, description="maximum number of requests of a key per second, on average"
    )
    rate_limit_burst: Annotated[int, REQUEST_RATE] = Field(
        default=200, ge=1, description="maximum number of requests of a key at once after a pause"
    )
    max_admitting: Annotated[int, ADMISSION] = Field(
        default=512,
        ge=1,
        description="maximum number of requests for work that a process accepts at once; an account"
        " has at most half of them",
    )
    max_queued: Annotated[int, QUEUE_LENGTH] = Field(
        default=10_000,
        ge=1,
        description="maximum number of unfinished runs, jobs, maps, workflows and tasks",
    )
    max_stored_bytes: Annotated[int, STORAGE_QUOTA] = Field(
        default=50 * 1024**3,
        ge=1,
        description="maximum size of all artifacts and records of an account, in bytes",
    )

    planner: Literal["rules", "auto", "llm"] = Field(
        default="auto", description="planner of a task whose constraints name no planner"
    )
    reviewer: Literal["checks", "auto", "judge"] = Field(
        default="auto", description="reviewer of a task whose constraints name no reviewer"
    )
    planning: ModelUse = Field(
        default=ModelUse(), description="settings of the language model that plans"
    )
    judging: ModelUse = Field(
        default=ModelUse(max_tokens=400),
        description="settings of the language model that judges; by default it has the planner's"
        " provider",
    )
    max_nodes: Annotated[int, WORKFLOW_SIZE] = Field(
        default=1_000, ge=1, description="maximum number of nodes in a workflow"
    )
    max_edges: Annotated[int, WORKFLOW_SIZE] = Field(
        default=10_000, ge=1, description="maximum number of edges in a workflow"
    )
    max_price_age_days: int = Field(default=120, ge=0)
    body_limit_bytes: Annotated[int, BODY_SIZE] = Field(
        default=1024 * 1024,
        ge=1024,
        description="maximum size of a body that is not an upload, in bytes",
    )
    upload_limit_bytes: Annotated[int, BODY_SIZE] = Field(
        default=50 * 1024 * 1024,
        ge=1024,
        description="maximum size of an uploaded artifact, in bytes",
    )
    reply_limit_bytes: Annotated[int, REPLY_SIZE] = Field(
        default=64 * 1024 * 1024,
        ge=1024,
        description="maximum size of a vendor's answer, compressed and decompressed, in bytes",
    )
    max_text: Annotated[int, REQUEST_SHAPE] = Field(
        default=500_000, ge=1, description="maximum length of a text in a body, in characters"
    )
    max_items: Annotated[int, REQUEST_SHAPE] = Field(
        default=50_000, ge=1, description="maximum number of items of a list in a body"
    )
    max_members: Annotated[int, REQUEST_SHAPE] = Field(
        default=1_000, ge=1, description="maximum number of members of an object in a body"
    )
    max_values: Annotated[int, REQUEST_SHAPE] = Field(
        default=30_000,
        ge=1,
        description="maximum number of values of all lists and objects in a body",
    )
    target_limit_bytes: Annotated[int, REQUEST_SHAPE] = Field(
        default=8 * 1024, ge=256, description="maximum size of a path with its query, in bytes"
    )
    head_limit_bytes: Annotated[int, REQUEST_SHAPE] = Field(
        default=32 * 1024, ge=1024, description="maximum size of all headers of a request, in bytes"
    )
    max_headers: Annotated[int, REQUEST_SHAPE] = Field(
        default=100, ge=10, description="maximum number of headers of a request"
    )
    head_timeout_s: Annotated[float, REQUEST_START] = Field(
        default=30.0, gt=0, description="maximum time until a request begins, in seconds"
    )
    body_timeout_s: Annotated[float, REQUEST_SHAPE] = Field(
        default=30.0,
        gt=0,
        description="maximum time until a body has arrived, in seconds; one more second for each"
        " 16 KiB",
    )

    lease_s: float = Field(default=15.0, gt=0)
    max_concurrent_jobs: Annotated[int, JOB_PLACES] = Field(
        default=256, ge=1, description="maximum number of jobs of a process at once"
    )
    max_concurrent_jobs_per_account: Annotated[int, ACCOUNT_JOB_PLACES] = Field(
        default=128, ge=1, description="maximum number of jobs of an account at once in a process"
    )
    cpu_workers: int | None = Field(
        default=None,
        ge=1,
        description="maximum number of CPU steps at once; by default the number of cores, and at"
        " least 2. One more step may run for an account that has no running step",
    )
    cpu_timeout_s: Annotated[float, STEP_TIME] = Field(
        default=60.0, gt=0, description="maximum time of a CPU step in a worker process, in seconds"
    )
    cpu_memory_bytes: Annotated[int | None, STEP_MEMORY] = Field(
        default=4 * 1024**3,
        ge=256 * 1024**2,
        description="maximum memory of a worker process, in bytes",
    )
    dispatch: DaskAddress | None = Field(
        default=None,
        description="address of a Dask cluster for CPU steps, as `dask://host:port`, or `tls://…`"
        " if encrypted (the extra `dask`); by default worker processes of this machine",
    )
    dispatch_tls: TlsFiles | None = Field(
        default=None,
        description="paths of the certificates of an encrypted cluster: `ca_file`, `cert_file`,"
        " `key_file`; by default those of Dask's configuration",
    )
    scheduler_wait_s: float = Field(
        default=60.0,
        ge=0,
        description="maximum wait of a step or batch for Dask's scheduler, in seconds",
    )
    worker_wait_s: float = Field(
        default=600.0,
        ge=0,
        description="maximum wait of a step for a Dask worker with its resources, such as a GPU, in"
        " seconds",
    )
    timeout_s: Annotated[float, CALL_TIME] = Field(
        default=120.0, gt=0, description="maximum time of a vendor call, in seconds"
    )
    # A default of its own would cut a longer `total_s` that an operator gives a slow server.
    first_byte_timeout_s: float | None = Field(default=None, gt=0)
    connect_timeout_s: float = Field(default=5.0, gt=0)
    retries: int = Field(
        default=2, ge=0, le=5, description="maximum number of retries of a vendor call within a job"
    )
    batch_grace_s: float = Field(
        default=60.0,
        ge=0,
        description="time after which a batch that its vendor does not list was not submitted, in"
        " seconds",
    )
    retry_base_s: float = Field(default=0.5, ge=0)
    retry_cap_s: float = Field(default=30.0, ge=0)
    connection_test_s: float = Field(
        default=3.0,
        ge=0,
        description="maximum time of the test of a new connection, in seconds; 0 disables the test",
    )
    breaker_failures: int = Field(
        default=5, ge=1, description="number of consecutive failures that open a circuit breaker"
    )
    breaker_cooldown_s: float = Field(default=5.0, gt=0)
    max_cooldown_wait_s: float = Field(
        default=60.0,
        ge=0,
        description="maximum wait of a job for connections that a failure has blocked, in seconds",
    )
    max_concurrent_calls: Annotated[int, CALL_PLACES] = Field(
        default=16, ge=1, description="maximum number of calls of a connection at once"
    )

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise SettingsError(
                ErrorCode.INVALID_REQUEST,
                "The settings (`toolkit.toml`, TOOLKIT_ variables) cannot be used.",
                details=_list_errors(error),
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
        """Return whether the settings name an embedded engine: its data, or the sandbox."""
        return self.sandbox or bool({"data_dir", "database"} & self.model_fields_set)

    def get_database_url(self) -> str | None:
        """Return the address of the database with its password, or None for SQLite."""
        return None if self.database is None else self.database.get_secret_value()

    def get_max_concurrent_calls(self, vendor_id: str) -> int:
        """Return the maximum number of calls at once of a connection to a vendor."""
        vendor = self.vendors.get(vendor_id)
        return (vendor.max_concurrent_calls if vendor else None) or self.max_concurrent_calls

    def resolve_timeouts(self, vendor_id: str, capability_id: str = "") -> Timeouts:
        """Return the timeouts of a call: the vendor's, else the capability's, else the general."""
        general = Timeouts(
            connect_s=self.connect_timeout_s,
            first_byte_s=self.first_byte_timeout_s,
            total_s=self.timeout_s,
        )
        vendor = self.vendors.get(vendor_id)
        update: dict[str, float] = {}
        for timeouts in (self.timeouts.get(capability_id), vendor.timeouts if vendor else None):
            update |= timeouts.model_dump(exclude_none=True) if timeouts else {}
        return general.model_copy(update=update)


def _list_errors(validation: ValidationError) -> list[Detail]:
    """List every error without the value, because it may be a secret in the wrong place."""
    return [
        Detail(
            ".".join(str(part) for part in error["loc"] if part != "[key]"),
            error["msg"].removeprefix("Value error, "),
        )
        for error in validation.errors(
            include_url=False, include_input=False, include_context=False
        )
    ]
