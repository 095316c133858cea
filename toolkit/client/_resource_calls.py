"""Calls of a client's resources, which both clients share.

Each call builds a request and returns the result of its client's `_create` or `_call`: a handle, or
a coroutine in the async client. The call itself awaits nothing, so it need not be generated.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any, Generic, TypeVar

from toolkit.client._client_state import ClientState
from toolkit.client._definition_views import GpuView, ModelView
from toolkit.client._record_view import BillingView, RecordView, UsageView
from toolkit.client._wire.messages import drop_none, make_annotation
from toolkit.contract.account import AccountCreated, CallerAccount, KeyCreated
from toolkit.contract.billing import Billing
from toolkit.contract.catalog import CatalogModel, Gpu
from toolkit.contract.choices import OptimizeFor, Scope, UsageGroup
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.health import Provider
from toolkit.contract.short_tracebacks import HasKnownNames
from toolkit.contract.usage import UsageLine

H = TypeVar("H")  # a handle; in the async client, a coroutine that returns one
K = TypeVar("K")  # a new key; in the async client, a coroutine that returns one
MAX_KNOWN_IDS = 500  # ids that completion offers, for each resource
# Results of the calls; in the async client, coroutines.
V = TypeVar("V")
W = TypeVar("W")


class HandleCalls(ABC, Generic[H]):
    """The base class of the methods of a handle, which stands for one record."""

    @abstractmethod
    def _call(self, method: str, what: str = "", **options: Any) -> H:
        """Send a request about the record, update the record, and return its handle."""


class ResourceCalls(HasKnownNames, ABC, Generic[H]):
    """The base class of the methods of one `/v1` resource, such as `client.runs`."""

    handle: type[Any]
    _http: ClientState
    _known_ids: dict[str, None]

    @abstractmethod
    def _create(self, body: Mapping[str, object], **options: Any) -> H:
        """Send the request that creates a record, and return its handle."""

    @abstractmethod
    def _call(self, method: str, id: str, what: str = "", **options: Any) -> H:
        """Send a request about the record with an id, and return its handle."""

    def _remember_id(self, id: str) -> None:
        self._known_ids[id] = None
        if len(self._known_ids) > MAX_KNOWN_IDS:
            del self._known_ids[next(iter(self._known_ids))]

    def _ipython_key_completions_(self) -> list[str]:
        """Return the known ids, newest last; completion sends no request."""
        return list(self._known_ids)

    @property
    def _name(self) -> str:
        name: str = self.handle.resource.rpartition("/")[2]
        return name


class DeletableCalls(ResourceCalls[H]):
    """The methods of a resource whose records can be deleted."""

    def delete(self, id: str) -> H:
        """Delete a record; a vendor's resource behind it is deleted as well and no longer billed.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` if it is in use, or if the vendor failed.
        """
        return self._call("DELETE", id)


class WorkCalls(ResourceCalls[H]):
    """The methods of a resource of work: runs, jobs, workflows or tasks."""

    def cancel(self, id: str) -> H:
        """Cancel work; work that has ended does not change."""
        return self._call("POST", id, "/cancel")


class AnnotatedCalls(WorkCalls[H]):
    """The methods of a resource of work that carries tags and a note."""

    def annotate(self, id: str, *, tags: Sequence[str] | None = None, note: str | None = None) -> H:
        """Replace the tags or the note of work in any state; an omitted value does not change.

        Args:
            id: id of the work.
            tags: new tags; `[]` removes all tags.
            note: new note; `""` removes the note.

        Raises:
            RequestError: `NOT_FOUND`; `INVALID_REQUEST` for a tag with a comma, or for a value over
                its limit.
        """
        return self._call("POST", id, "/annotate", json=make_annotation(tags, note))


class AgentCalls(DeletableCalls[H]):
    """The methods of `client.agents`, for the sync and the async client."""

    def create(
        self,
        name: str,
        objective: str,
        *,
        version: str | None = None,
        capabilities: Sequence[str] | None = None,
        max_cost_usd: float | None = None,
        optimize_for: OptimizeFor | None = None,
        endpoint_id: str | None = None,
        compute_id: str | None = None,
    ) -> H:
        """Register a version of an agent; run it by its handle, or by its name in `runs.create`.

        Args:
            name: name in lower case, such as `card-maker`.
            objective: the objective; each `{word}` in it is a parameter of the runs.
            version: the version, which never changes. Default: `1`.
            capabilities: capabilities that the agent may use. Default: all.
            max_cost_usd: budget of each run.
            optimize_for: `cost`, `latency`, `quality` or `balanced`.
            endpoint_id: serverless endpoint for images.
            compute_id: GPU pod to use in place of an endpoint.

        Raises:
            RequestError: `CONFLICT` if the name and version exist, `NOT_FOUND`.
        """
        constraints = drop_none(
            max_cost_usd=max_cost_usd,
            optimize_for=optimize_for,
            endpoint_id=endpoint_id,
            compute_id=compute_id,
        )
        body = drop_none(
            name=name,
            version=version,
            objective=objective,
            constraints=constraints,
            capabilities=None if capabilities is None else list(capabilities),
        )
        return self._create(body)


class ApiKeyHandleCalls(ABC, Generic[K]):
    """The methods of an API key's handle, for the sync and the async client."""

    _http: Any  # a `ClientState`

    @property
    @abstractmethod
    def path(self) -> str:
        """The path of the key, below `/v1`."""

    def rotate(self, *, overlap_s: int | None = None) -> K:
        """Replace the key by a new key, which is shown only once.

        Args:
            overlap_s: seconds that this key stays valid. Default: a day; 0 ends it at once.

        Raises:
            RequestError: `CONFLICT` if the key has ended, or was rotated before.
        """
        path, body = f"{self.path}/rotate", drop_none(overlap_s=overlap_s)
        key: K = self._http.request_record(KeyCreated, "POST", path, json=body)
        return key


class ApiKeyCalls(DeletableCalls[H], Generic[H, K]):
    """The methods of `client.api_keys`, for the sync and the async client."""

    def create(
        self,
        *,
        name: str | None = None,
        scopes: Sequence[Scope] | None = None,
        max_cost_usd_per_day: float | None = None,
        max_cost_usd: float | None = None,
        expires_in_s: int | None = None,
    ) -> K:
        """Create a key, which is shown only once.

        Args:
            name: purpose of the key.
            scopes: `read`, `write` and `admin`. Default: the first two. `work` alone is for code
                that only starts work and reads its results.
            max_cost_usd_per_day: budget of all work of this key for each day in UTC.
            max_cost_usd: budget of all work of this key, in US dollars.
            expires_in_s: lifetime of the key, in seconds. None lets it live until it is revoked.
        """
        body = drop_none(
            name=name,
            scopes=None if scopes is None else list(scopes),
            max_cost_usd_per_day=max_cost_usd_per_day,
            max_cost_usd=max_cost_usd,
            expires_in_s=expires_in_s,
        )
        return self._make_key("", body)

    def rotate(self, id: str, *, overlap_s: int | None = None) -> K:
        """Replace a key by a new key, which is shown only once.

        Args:
            id: id of the old key.
            overlap_s: seconds that the old key stays valid. Default: a day; 0 ends it at once.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` if the key has ended, or was rotated before.
        """
        return self._make_key(f"/{id}/rotate", drop_none(overlap_s=overlap_s))

    def _make_key(self, what: str, body: Mapping[str, object]) -> K:
        path = f"/{self.handle.resource}{what}"
        key: K = self._http.request_record(KeyCreated, "POST", path, json=body)
        return key


class AreaCalls:
    """The base class of the methods of one area of the client, such as `client.usage`."""

    def __init__(self, http: ClientState) -> None:
        self._http = http


class AccountCalls(AreaCalls, Generic[V, W]):
    """The methods of `client.account`, for the sync and the async client."""

    def create(self, email: str) -> V:
        """Open an account, and return it with its first key, which is never shown again."""
        body = {"email": email}
        account: V = self._http.request_record(AccountCreated, "POST", "/account", json=body)
        return account

    def get(self) -> W:
        """Read the caller's account, and the record of the key that sends this request."""
        account: W = self._http.request_record(CallerAccount, "GET", "/account")
        return account


class BillingCalls(AreaCalls, Generic[V]):
    """The methods of `client.billing`, for the sync and the async client."""

    def get(self, month: str | None = None, *, by_key: bool = False, by_account: bool = False) -> V:
        """Return each vendor's bill for a month, computed from the calls that this service made.

        Args:
            month: month, such as `2026-11`. Default: the present month.
            by_key: a line for each key that asked for work.
            by_account: a line for each account whose work used the caller's own connections.

        Raises:
            RequestError: `INVALID_REQUEST` for both `by_key` and `by_account`.
        """
        if by_key and by_account:
            message = "A bill is grouped by key or by account: give one of them."
            raise RequestError(ErrorCode.INVALID_REQUEST, message)
        by = "key" if by_key else "account" if by_account else None
        params = drop_none(month=month, group_by=by)
        billing: V = self._http.request_view(BillingView, Billing, "GET", "/billing", params=params)
        return billing


class CatalogCalls(AreaCalls, Generic[V, W]):
    """The methods of `client.catalog`, for the sync and the async client."""

    def gpus(self) -> V:
        """List the GPUs of the connected GPU cloud; an id is the `gpu_type` of a new compute.

        Raises:
            RequestError: `CREDENTIALS_MISSING`.
        """
        collection: V = self._http.request_list(GpuView, "GPUs", Gpu, "/catalog/gpus")
        return collection

    def models(self) -> W:
        """List every vendor's models with their list prices."""
        path = "/catalog/models"
        collection: W = self._http.request_list(ModelView, "models", CatalogModel, path)
        return collection


class ProviderCalls(AreaCalls, Generic[V]):
    """The methods of `client.providers`, for the sync and the async client."""

    def list(self) -> V:
        """List every vendor, and whether it is connected."""
        view = partial(RecordView[Provider], noun="Provider")
        collection: V = self._http.request_list(view, "providers", Provider, "/providers")
        return collection


class UsageCalls(AreaCalls, Generic[V]):
    """The methods of `client.usage`, for the sync and the async client."""

    def list(
        self,
        group_by: Sequence[UsageGroup] = ("day", "capability", "provider"),
        *,
        first: date | str | None = None,
        last: date | str | None = None,
    ) -> V:
        """Return usage totals: a line for each combination of values of the `group_by` fields.

        Args:
            group_by: names among `day`, `capability`, `provider`, `connection`, `agent` and `key`.
                `account` selects all work by the caller's own connections, of any account.
            first, last: first and last day, by UTC. Default: the last 30 days.

        Raises:
            RequestError: `INVALID_REQUEST`, for example for more than a year.
        """
        span = {"from": first, "to": last}
        days = {name: str(day) for name, day in span.items() if day is not None}
        params = {"group_by": ",".join(group_by), **days}
        usage: V = self._http.request_list(
            UsageView, "usage lines", UsageLine, "/usage", params=params
        )
        return usage
