"""Handles and views offer the members of their records and the methods of their resources."""

import inspect
import typing
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from tests.client.test_client import KEY, RUN, URL, ListedService, envelope, events
from toolkit import AsyncClient, Client
from toolkit.client._async.resources.catalog import GpuView, ModelView
from toolkit.client._record_view import (
    BillingView,
    ConnectionTestView,
    Member,
    RecordView,
    ReviewView,
    RouteView,
    TextMember,
    UsageView,
)
from toolkit.contract.billing import Billing
from toolkit.contract.catalog import CatalogModel, Gpu
from toolkit.contract.connections import ConnectionTest
from toolkit.contract.operations.table import OPERATIONS
from toolkit.contract.runs import Route
from toolkit.contract.tasks import Review
from toolkit.contract.usage import UsageLine


def list_resources(kind: type[Client] | type[AsyncClient]) -> Iterator[tuple[str, Any, Any]]:
    """List the resources of a client that have handles: name, class, and class of the handle."""
    client = kind(URL, KEY)
    attributes = {name: value for base in kind.__mro__ for name, value in vars(base).items()}
    for name, value in attributes.items():
        if isinstance(value, cached_property):
            resource = type(getattr(client, name))
            if hasattr(resource, "handle"):
                yield name, resource, resource.handle


def list_parameters(function: Callable[..., object]) -> list[str]:
    """List the parameters of a function as they are written."""
    return [str(parameter) for parameter in inspect.signature(function).parameters.values()]


VIEWS = [
    *(
        pytest.param(handle, handle.record_type, id=f"{kind.__name__}.{name}")
        for kind in (Client, AsyncClient)
        for name, _, handle in list_resources(kind)
    ),
    (ReviewView, Review), (RouteView, Route), (UsageView, UsageLine), (BillingView, Billing),
    (ConnectionTestView, ConnectionTest), (GpuView, Gpu), (ModelView, CatalogModel),
]  # fmt: skip
# A caller may index the output of a run that has completed without a check for None.
ANY_TYPE = ("output",)


@pytest.mark.parametrize(("view", "record"), VIEWS)
def test_view_offers_members_of_its_record(
    view: type[RecordView[Any]], record: type[BaseModel]
) -> None:
    """Given a record, then each of its members is a documented property, of the same type."""
    hints = typing.get_type_hints(record)
    for name in record.model_fields:
        offered = getattr(view, name, None)
        assert isinstance(offered, property), name
        assert offered.__doc__, name
        if isinstance(offered, TextMember):
            assert hints[name] == str | None, name
        elif isinstance(offered, Member):
            hint = typing.get_args(vars(offered)["__orig_class__"])[0]
            assert name in ANY_TYPE or hint == hints[name], name
        else:
            assert typing.get_type_hints(offered.fget)["return"] is not None


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_handle_has_the_methods_that_take_an_id(kind: type[Client] | type[AsyncClient]) -> None:
    """Given a method that takes an id, then the handle has it with the other parameters."""
    compared = 0
    for area, resource, handle in list_resources(kind):
        for name, function in inspect.getmembers(resource, inspect.isfunction):
            parameters = inspect.signature(function).parameters
            if name == "get" or name.startswith("_") or "id" not in parameters:
                continue
            offered = getattr(handle, name, None)
            assert inspect.isfunction(offered), f"{handle.__name__}.{name}, as client.{area} has it"
            assert list_parameters(offered)[1:] == list_parameters(function)[2:], f"{area}.{name}"
            compared += 1
    assert compared >= 20


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_handles_of_deletable_resources_have_delete(
    kind: type[Client] | type[AsyncClient],
) -> None:
    """Given each DELETE of a resource by its id, then there is a handle with `delete`."""
    deleted = {
        operation.resource.path.removeprefix("/v1/")
        for operation in OPERATIONS
        if operation.verb == "delete"
    }
    handles = {handle.resource: handle for _, _, handle in list_resources(kind)}
    assert {name for name, handle in handles.items() if hasattr(handle, "delete")} == deleted
    assert len(deleted) >= 8


async def test_awaiting_equals_waiting(capsys: pytest.CaptureFixture[str]) -> None:
    """Given work, then `wait()` of both clients and `await` show and return the same."""
    results = []
    for how in ("sync wait", "async wait", "await"):
        completion = envelope({**RUN, "status": "completed"})
        going = events("run.running", "run.completed")
        transport = httpx.MockTransport(ListedService(envelope(RUN), going, completion))
        if how == "sync wait":
            run = Client(URL, KEY, transport=transport).runs.get("run_1").wait()
        else:
            client = AsyncClient(URL, KEY, transport=transport)
            handle = await client.runs.get("run_1")
            run = await (handle.wait() if how == "async wait" else handle)  # type: ignore[assignment]
        results.append((run.status, capsys.readouterr().err))
    assert results[0] == results[1] == results[2]
    assert results[0][0] == "completed"
    assert results[0][1]
