"""Handles offer what their records hold: `.record` is for what few reach for."""

import importlib
import typing

import pytest

from toolkit.client._async.handle import AsyncHandle

# What a caller has sent, and bookkeeping that few reach for: `.record` has it.
RECORD_ALONE = {
    "options", "constraints", "agent", "compute_id", "endpoint_id", "max_retries", "forked_from",
    "connection_id", "queue_ms", "cached_from", "cost_source", "run_id", "job_id", "target",
    "started_at", "planner", "from_artifacts",
}  # fmt: skip
KINDS = [
    ("runs", "AsyncRun"), ("jobs", "AsyncJob"), ("workflows", "AsyncWorkflowRun"),
    ("tasks", "AsyncTask"), ("plans", "AsyncPlan"),
]  # fmt: skip


@pytest.mark.parametrize(("area", "name"), KINDS)
def test_a_handle_offers_what_its_record_holds(area: str, name: str) -> None:
    """Given a kind of work, then each fact of its record is a property of both its handles."""
    for package, called in (("_async", name), ("_sync", name.removeprefix("Async"))):
        module = importlib.import_module(f"toolkit.client.{package}.resources.{area}")
        handle: type[AsyncHandle] = getattr(module, called)
        for field in handle.model.model_fields.keys() - RECORD_ALONE:
            offered = getattr(handle, "model_name" if field == "model" else field)
            assert isinstance(offered, property), field
            assert typing.get_type_hints(offered.fget)["return"] is not None
            assert offered.__doc__
