"""Handles and views offer what their records hold."""

import inspect
import typing
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from tests.client.test_client import KEY, RUN, ListedService, envelope, events
from toolkit import AsyncClient, Client
from toolkit.client._async.handle import AsyncHandle
from toolkit.client._async.resources.catalog import GpuView, ModelView
from toolkit.client._members import Member, TextMember
from toolkit.client._record_view import (
    BillingView,
    ConnectionTestView,
    RecordView,
    ReviewView,
    RouteView,
    UsageView,
)
from toolkit.contract.billing import Billing
from toolkit.contract.catalog import CatalogModel, Gpu
from toolkit.contract.connections import ConnectionTest
from toolkit.contract.operations.table import OPERATIONS
from toolkit.contract.runs import Route
from toolkit.contract.tasks import Review
from toolkit.contract.usage import UsageLine


def list_resources(kind: type[Client] | type[AsyncClient]) -> Iterator[tuple[str, type, type]]:
    """The resources of a client that have handles: name, class, and class of the handle."""
    client = kind("http://service.test", KEY)
    found = {name: value for each in kind.__mro__ for name, value in vars(each).items()}
    for name, value in found.items():
        if isinstance(value, cached_property):
            resource = type(getattr(client, name))
            if hasattr(resource, "handle"):
                yield name, resource, resource.handle


def spell_rest(function: Callable[..., object], leave_out: int) -> list[str]:
    """The parameters of a function after the first ones, as they are written."""
    return [str(each) for each in inspect.signature(function).parameters.values()][leave_out:]


HANDLES = [
    pytest.param(handle, id=f"{kind.__name__}.{name}")
    for kind in (Client, AsyncClient)
    for name, _, handle in list_resources(kind)
]
VIEWS = [
    (ReviewView, Review), (RouteView, Route), (UsageView, UsageLine), (BillingView, Billing),
    (ConnectionTestView, ConnectionTest), (GpuView, Gpu), (ModelView, CatalogModel),
]  # fmt: skip
# A caller may index the output of a run that has completed without a check for None.
ANY_TYPE = ("output",)


def check_members(view: type[RecordView[Any]], record: type[BaseModel]) -> None:
    """Check that each member of a record is a documented property of a view, of the same type."""
    hints = typing.get_type_hints(record)
    for name in record.model_fields:
        offered = getattr(view, name, None)
        assert isinstance(offered, property), name
        assert offered.__doc__, name
        if isinstance(offered, TextMember):
            assert hints[name] == str | None, name
        elif isinstance(offered, Member):
            told = typing.get_args(vars(offered)["__orig_class__"])[0]
            assert name in ANY_TYPE or told == hints[name], name
        else:
            assert typing.get_type_hints(offered.fget)["return"] is not None


@pytest.mark.parametrize("handle", HANDLES)
def test_a_handle_offers_what_its_record_holds(handle: type[AsyncHandle[Any]]) -> None:
    """Given a kind of resource, then each member of its record is a property of its handle."""
    check_members(handle, handle.record_type)


@pytest.mark.parametrize(("view", "record"), VIEWS)
def test_a_view_offers_what_its_record_holds(
    view: type[RecordView[Any]], record: type[BaseModel]
) -> None:
    """Given a record that is no resource, then each of its members is a property of its view."""
    check_members(view, record)


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_handle_does_what_its_resource_does_by_id(
    kind: type[Client] | type[AsyncClient],
) -> None:
    """Given a method that takes an id, then the handle has it too, and takes all but the id."""
    compared = 0
    for area, resource, handle in list_resources(kind):
        for name, function in inspect.getmembers(resource, inspect.isfunction):
            own = inspect.signature(function).parameters
            if name == "get" or name.startswith("_") or "id" not in own:
                continue
            offered = getattr(handle, name, None)
            assert inspect.isfunction(offered), f"{handle.__name__}.{name}, as client.{area} has it"
            assert spell_rest(offered, 1) == spell_rest(function, 2), f"{area}.{name}"
            compared += 1
    assert compared >= 20


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_whatever_can_be_deleted_can_be_by_its_handle(
    kind: type[Client] | type[AsyncClient],
) -> None:
    """Given each DELETE of a resource by its id, then there is a handle with `delete`."""
    deleted = {one.resource.path.removeprefix("/v1/") for one in OPERATIONS if one.verb == "delete"}
    handles = {handle.resource: handle for _, _, handle in list_resources(kind)}
    assert {name for name, handle in handles.items() if hasattr(handle, "delete")} == deleted
    assert len(deleted) >= 8


async def test_waiting_and_awaiting_are_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """Given work, then `wait()` of both clients and `await` show and return the same."""
    told = []
    for how in ("sync wait", "async wait", "await"):
        done = envelope({**RUN, "status": "completed"})
        going = events("run.running", "run.completed")
        transport = httpx.MockTransport(ListedService(envelope(RUN), going, done))
        if how == "sync wait":
            run = Client("http://service.test", KEY, transport=transport).runs.get("run_1").wait()
        else:
            client = AsyncClient("http://service.test", KEY, transport=transport)
            begun = await client.runs.get("run_1")
            run = await (begun.wait() if how == "async wait" else begun)  # type: ignore[assignment]
        told.append((run.status, capsys.readouterr().err))
    assert told[0] == told[1] == told[2]
    assert told[0][0] == "completed"
    assert told[0][1]
