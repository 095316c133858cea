"""Calls of the areas without handles, which both clients share: account, catalogue, usage, bills.

Each call returns the result of a request, or in the async client a coroutine for it.
"""

from collections.abc import Sequence
from datetime import date
from typing import Generic, TypeVar

from toolkit.client._client_state import ClientState
from toolkit.client._collections import Collection, UsageLines
from toolkit.client._definition_views import GpuView, ModelView
from toolkit.client._record_view import BillingView, RecordView, UsageView
from toolkit.client._wire.messages import drop_none
from toolkit.contract.account import AccountCreated, CallerAccount
from toolkit.contract.billing import Billing
from toolkit.contract.catalog import CatalogModel, Gpu
from toolkit.contract.choices import UsageGroup
from toolkit.contract.health import Provider
from toolkit.contract.usage import UsageLine

# Results of the calls; in the async client, coroutines.
V = TypeVar("V")
W = TypeVar("W")


class AreaCalls:
    """The calls of an area of `/v1`."""

    def __init__(self, http: ClientState) -> None:
        self._http = http


class AccountCalls(AreaCalls, Generic[V, W]):
    """The calls of `client.account`."""

    def create(self, email: str) -> V:
        """Open an account; the key is shown only once."""
        body = {"email": email}
        account: V = self._http.request_record(AccountCreated, "POST", "/account", json=body)
        return account

    def get(self) -> W:
        """Read the caller's account, and the known facts of its key."""
        account: W = self._http.request_record(CallerAccount, "GET", "/account")
        return account


class BillingCalls(AreaCalls, Generic[V]):
    """The calls of `client.billing`."""

    def get(self, month: str | None = None, *, by_key: bool = False, by_account: bool = False) -> V:
        """Read each vendor's bill for a month, from the calls of this service.

        Args:
            month: month, such as `2026-11`. Default: the present month.
            by_key: a line for each key that asked for work.
            by_account: a line for each account whose work used the caller's own connections.
        """
        by = "key" if by_key else "account" if by_account else None
        params = drop_none(month=month, group_by=by)
        billing: V = self._http.request_view(BillingView, Billing, "GET", "/billing", params=params)
        return billing


class CatalogCalls(AreaCalls, Generic[V, W]):
    """The calls of `client.catalog`."""

    def gpus(self) -> V:
        """List the GPUs of the connected cloud, by the id that a compute's `gpu_type` takes.

        Raises:
            RequestError: `CREDENTIALS_MISSING`.
        """

        def wrap(gpus: Sequence[Gpu]) -> Collection[GpuView]:
            return Collection([GpuView(gpu) for gpu in gpus], "GPUs")

        collection: V = self._http.request_list(wrap, Gpu, "/catalog/gpus")
        return collection

    def models(self) -> W:
        """List every vendor's models with their list prices."""

        def wrap(models: Sequence[CatalogModel]) -> Collection[ModelView]:
            return Collection([ModelView(model) for model in models], "models")

        collection: W = self._http.request_list(wrap, CatalogModel, "/catalog/models")
        return collection


class ProviderCalls(AreaCalls, Generic[V]):
    """The calls of `client.providers`."""

    def list(self) -> V:
        """List every vendor, and whether it is connected."""

        def wrap(providers: Sequence[Provider]) -> Collection[RecordView[Provider]]:
            return Collection(
                [RecordView(provider, "Provider") for provider in providers], "providers"
            )

        collection: V = self._http.request_list(wrap, Provider, "/providers")
        return collection


class UsageCalls(AreaCalls, Generic[V]):
    """The calls of `client.usage`."""

    def list(
        self,
        group_by: Sequence[UsageGroup] = ("day", "capability", "provider"),
        *,
        first: date | str | None = None,
        last: date | str | None = None,
    ) -> V:
        """Return the total usage: a line for each group that is alike in all fields of `group_by`.

        Args:
            group_by: names among `day`, `capability`, `provider`, `connection`, `agent` and `key`.
                `account` selects all work by the caller's own connections, of any account.
            first, last: first and last day, by UTC. Default: the last 30 days.

        Raises:
            RequestError: `INVALID_REQUEST`, for example for more than a year.
        """

        def wrap(lines: Sequence[UsageLine]) -> UsageLines:
            return UsageLines([UsageView(line) for line in lines])

        span = {"from": first, "to": last}
        days = {name: str(day) for name, day in span.items() if day is not None}
        params = {"group_by": ",".join(group_by), **days}
        usage: V = self._http.request_list(wrap, UsageLine, "/usage", params=params)
        return usage
