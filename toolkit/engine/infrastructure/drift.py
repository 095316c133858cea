"""Drift between GPU clouds and a data directory, in both directions, for `doctor`."""

import json
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from toolkit.contract.connections import Connection
from toolkit.contract.errors import ToolkitError
from toolkit.engine.infrastructure.compute import Computes
from toolkit.engine.infrastructure.endpoints import Endpoints
from toolkit.engine.infrastructure.managed_resource import ManagedResource
from toolkit.engine.infrastructure.storage import Storages
from toolkit.engine.infrastructure.templates import Templates
from toolkit.engine.provider_context import ProviderContext
from toolkit.plugins import ProviderError, Vendor
from toolkit.plugins.infrastructure import PodState, ResourceQuery, ResourceState
from toolkit.store import Row
from toolkit.store.maintenance.upkeep_database import DataDirIssue

_Kind = type[ManagedResource[Any, Any]]
RESOURCE_TYPES: tuple[_Kind, ...] = (Endpoints, Computes, Templates, Storages)
_ID_IN_NAME = re.compile(r"(?:ep|cmp|tpl|sto)_[0-7][0-9a-hjkmnp-tv-z]{25}")
# Templates cost nothing, and people keep templates of their own.
_BILLED_TABLES = {"endpoints", "compute", "storage"}


async def find_drift(
    reach: ProviderContext, tables: Mapping[str, Sequence[Row]]
) -> list[DataDirIssue]:
    """List the differences between the resources at the connected GPU clouds and the records.

    Args:
        tables: rows of `connections` and of each kind's table, by table name.
    """
    issues: list[DataDirIssue] = []
    own_ids = {str(row["id"]) for kind in RESOURCE_TYPES for row in tables[kind.table]}
    for vendor, connection, ids in _list_clouds(reach, tables["connections"]):
        try:
            for kind in RESOURCE_TYPES:
                if kind.creation.kind in vendor.infrastructure:
                    query = ResourceQuery(resource=kind.resource)
                    reply = await reach.ask_vendor(vendor, connection, query)
                    issues += _compare_kind(
                        vendor.id, kind, reply.items, tables[kind.table], ids, own_ids
                    )
        except (ProviderError, ToolkitError) as error:
            issues.append(
                _advise(
                    f"The resources at {vendor.id} could not be listed by"
                    f" `{connection.secret_ref}`: {error.message}"
                )
            )
    return issues


def _list_clouds(
    reach: ProviderContext, rows: Sequence[Row]
) -> Iterator[tuple[Vendor, Connection, frozenset[str]]]:
    """Yield each GPU cloud once for each distinct pointer, with the connections of that pointer."""
    records = [(row, Connection.model_validate_json(str(row["doc"]))) for row in rows]
    pointers = {
        _get_pointer(connection): connection for row, connection in records if not row["deleted"]
    }
    for pointer, connection in pointers.items():
        vendor = reach.registry.vendors.get(connection.provider)
        if vendor is not None and ResourceQuery.kind in vendor.infrastructure:
            ids = frozenset(
                candidate.id for _, candidate in records if _get_pointer(candidate) == pointer
            )
            yield vendor, connection, ids


def _get_pointer(connection: Connection) -> tuple[str, str, str]:
    return connection.provider, connection.connection_type, connection.secret_ref


def _compare_kind(
    vendor: str,
    kind: _Kind,
    items: Sequence[ResourceState],
    rows: Sequence[Row],
    connections: frozenset[str],
    own_ids: Container[str],
) -> Iterator[DataDirIssue]:
    """Compare resources of one kind: report those that exist only at the cloud or only here.

    A resource whose name contains the id of another resource of ours is its companion. For example,
    a vendor creates and deletes a template together with an endpoint.
    """
    real_rows = [row for row in rows if not json.loads(row["spec"]).get("sandbox")]
    by_vendor_id = {row["vendor_id"]: row for row in real_rows if row["vendor_id"]}
    by_id = {row["id"]: row for row in real_rows}
    states = [
        state
        for state in items
        if not (isinstance(state, PodState) and state.status == "terminated")
    ]
    for state in states:
        match = _ID_IN_NAME.search(state.name)
        row = by_vendor_id.get(state.vendor_id)
        if row is None and match is not None:
            row = by_id.get(match.group())
        if row is not None:
            never_made = row["status"] == "failed" and row["vendor_id"] is None
            if row["status"] == "deleted" or never_made:
                yield DataDirIssue(
                    f"`{row['id']}` is {row['status']} here but still exists at {vendor}, which may"
                    f" bill it: delete `{state.name}` there."
                )
        elif match is not None and match.group() not in own_ids:
            yield _advise(
                f"`{state.name}` at {vendor} was made from another data directory: delete it there"
                " if that directory is gone."
            )
        elif match is None and kind.table in _BILLED_TABLES:
            yield _advise(
                f"`{state.name}` at {vendor} was not made by the toolkit: delete it there if nobody"
                " needs it."
            )
    present = {state.vendor_id for state in states}
    for row in real_rows:
        living = row["status"] in ("creating", "ready") and row["connection_id"] in connections
        if living and row["vendor_id"] and row["vendor_id"] not in present:
            yield _advise(
                f"`{row['id']}` is {row['status']} here but no longer exists at {vendor}: delete it"
                " here."
            )


def _advise(message: str) -> DataDirIssue:
    return DataDirIssue(message, serious=False)
