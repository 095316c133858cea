"""Capabilities, agents, artifacts, connections, keys and the catalogue as views."""

from datetime import date, datetime
from typing import Any, Literal

from toolkit.client._record_view import Member, RecordView, TextMember
from toolkit.contract.account import ApiKey
from toolkit.contract.agents import Agent
from toolkit.contract.artifacts import Artifact
from toolkit.contract.base import JsonObject
from toolkit.contract.capabilities import CapabilityRecord, JobForm, Source
from toolkit.contract.catalog import CatalogModel, CatalogPriceChange, CatalogPriceTier, Gpu
from toolkit.contract.choices import ConnectionType, Scope
from toolkit.contract.connections import Connection
from toolkit.contract.plans import Constraints
from toolkit.display.records import html, media
from toolkit.display.records.data_frame import flatten_record

MAX_INLINE_BYTES = 4 * 1024 * 1024


class CapabilityView(RecordView[CapabilityRecord]):
    """A capability: its version, schemas and the providers that can serve it."""

    title = Member[str]("Its human label.")
    version = Member[str]("Its version.")
    description = Member[str]("A sentence on what it does.")
    status = Member[Literal["available", "planned"]]("`available`, or `planned`.")
    name = Member[str]("Its name, without the version.")
    async_ = Member[bool]("True if it takes so long that runs of it are waited for.")
    estimated_cost = Member[bool]("True if its cost can be estimated before it runs.")
    invoke = Member[str]("The path that invokes it.")
    job = Member[JobForm]("The form of its jobs.")
    source = Member[Source]("Where it comes from.")
    input = Member[JsonObject]("The fields of its input.")
    output = Member[JsonObject]("The fields of its output.")
    targets = Member[list[str]]("The providers that can serve it.")
    accepts = Member[list[str]]("The media types that it takes from nodes before it.")
    yields = Member[str]("The media type of its artifact.")
    input_schema = Member[JsonObject]("The JSON schema of its input.")
    output_schema = Member[JsonObject]("The JSON schema of its output.")

    def _render_html(self) -> str:
        row = flatten_record(self.record)
        names = (
            "title", "description", "status", "default_provider", "accepts", "yields",
            "input_schema",
        )  # fmt: skip
        return html.render_facts(f"{self.id}@{self.record.version}", {n: row[n] for n in names})


class AgentView(RecordView[Agent]):
    """A version of an agent: a named objective with parameters."""

    @property
    def name(self) -> str:
        """`name@version`, which names it in `runs.create`."""
        return f"{self.record.name}@{self.record.version}"

    parameters = Member[list[str]]("The parameters that a run has to be given, each a text.")
    objective = Member[str]("The objective, with its parameters in braces.")
    version = Member[str]("Its version.")
    constraints = Member[Constraints]("The limits that its runs keep to.")
    created_at = Member[datetime]("The time at which it was made.")
    deleted = Member[bool]("True once it was deleted.")
    capabilities = Member[list[str]]("The only capabilities that it may use; empty for all.")


class ArtifactView(RecordView[Artifact]):
    """An artifact, with its bytes if they were read."""

    _cached_bytes: bytes | None = None
    media_type = Member[str]("Its media type, such as `image/png`.")
    size_bytes = Member[int]("Its size.")
    sha256 = Member[str]("The SHA-256 of its bytes.")
    filename = Member[str]("The name under which it is saved.")
    created_at = Member[datetime]("The time at which it was made.")
    deleted = Member[bool]("True once its bytes were deleted.")
    job_id = TextMember("The job that made it; empty for an upload.")

    metadata = Member[JsonObject]("The metadata that is known of it.")

    @property
    def is_small(self) -> bool:
        """True up to 4 MiB: it keeps its bytes once they are read, and a notebook displays it."""
        return self.size_bytes <= MAX_INLINE_BYTES

    def _repr_mimebundle_(self, **_: object) -> Any:
        if self._cached_bytes is None:
            return super()._repr_mimebundle_()
        plain = {"text/plain": repr(self)}
        return {
            **plain,
            **media.build_mime_bundle(
                self.record.media_type, self._cached_bytes, self.record.filename
            ),
        }


class ConnectionView(RecordView[Connection]):
    """A connection: a pointer to the secret that holds a vendor's key."""

    provider = Member[str]("The provider that it leads to.")
    connection_type = Member[ConnectionType]("`environment` or `aws_secrets_manager`.")
    secret_ref = Member[str]("The name of the secret; empty if another account shares it.")
    shared = Member[bool]("True if it is another account's, which shares it with this one.")
    shared_with = Member[Literal["all"] | list[str] | None]("For the owner: accounts, or `all`.")
    overbilled = Member[list[str]]("Models excluded from budgets until `trust`.")
    created_at = Member[datetime]("The time at which it was made.")
    deleted = Member[bool]("True once it was deleted.")

    @property
    def warning(self) -> str | None:
        """The fault that the test at creation found, or None; always None when read later."""
        return None if self.record.warning is None else self.record.warning.message


class ApiKeyView(RecordView[ApiKey]):
    """An API key, never with the key itself."""

    name = Member[str | None]("The use that it was made for.")
    prefix = Member[str]("The first characters of the key.")
    last4 = Member[str]("The last four characters of the key.")
    rotated_from = Member[str | None]("The key in whose place it came.")
    rotated_to = Member[str | None]("The key that came in its place.")
    allowance_of = Member[str | None]("The first key of a rotation, whose allowance it uses.")
    last_used_at = Member[datetime | None]("The time at which it was let in last, within a minute.")
    left_usd_today = Member[float | None]("The US dollars left today, or None without a limit.")
    max_cost_usd = Member[float | None]("The maximum US dollars of all its work.")
    left_usd = Member[float | None]("The US dollars left of `max_cost_usd`, if set.")
    scopes = Member[list[Scope]]("The scopes that it has: `read`, `write`, `admin`.")
    max_cost_usd_per_day = Member[float | None]("The maximum US dollars per day, if set.")
    created_at = Member[datetime]("The time at which it was made.")
    expires_at = Member[datetime | None]("The time at which it ends, for a rotated key.")
    revoked_at = Member[datetime | None]("The time at which it was revoked, or None.")


class GpuView(RecordView[Gpu]):
    """A GPU that can be rented."""

    noun = "GPU"

    provider = Member[str]("The GPU cloud that offers it.")
    name = Member[str]("Its name.")
    pool = Member[str]("The pool that an endpoint's `gpu_ids` takes.")
    memory_gb = Member[int | None]("The gigabytes of one GPU, or None if unknown.")
    prices_per_hour_usd = Member[dict[str, float]]("The list prices per hour, by tier.")


class ModelView(RecordView[CatalogModel]):
    """A model of a vendor, with its list prices."""

    noun = "Model"

    provider = Member[str]("The provider.")
    kind = Member[str]("The kind of operation, such as `text`.")
    model = Member[str]("The name that the provider knows it by.")
    default = Member[bool]("True if it is asked for when nobody names a model.")
    abilities = Member[list[str]]("What it can do beyond its kind, such as `tools`.")
    quality = Member[int]("Its tier: 1 economy, 2 standard, 3 premium.")
    prices_usd = Member[dict[str, float]]("The known US dollars of one unit, by unit.")
    price_tiers = Member[list[CatalogPriceTier]]("The prices of requests with longer inputs.")
    price_changes = Member[list[CatalogPriceChange]]("Announced changes, earliest first.")
    batch_share = Member[float | None]("The price share of the batch API, if any.")
    service_tier_shares = Member[dict[str, float]]("The price shares of service tiers.")
    bound = Member[str | None]("What limits the cost of a call; None excludes budgets.")
    ends = Member[date | None]("The day on which the vendor shuts it down, if that was announced.")
    successor = Member[str | None]("The model that the vendor names instead.")
    as_of = Member[str]("The day of the prices.")
    source = Member[str]("Where the prices were read.")
