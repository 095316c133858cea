"""Shell completion: values that are offered after the Tab key, by the type of the parameter.

Closed sets are `Literal` types, and complete by themselves. The values here are looked up: at the
server that the line names so far, or in the local data directory. A lookup that fails, or takes too
long, offers nothing, so that it does not disturb typing.
"""

import threading
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer

from toolkit.cli.local_completion import MAX_COMPLETIONS, Completion, Suggestions, completion
from toolkit.cli.target import Target, is_local, names_server, open_client

MAX_WAIT_S = 1.5  # for a server
# The fields that describe a record, next to its state.
_NAMES = ("name", "title", "provider", "objective", "capability", "media_type")


def _read_target(ctx: typer.Context) -> Target:
    """Read the target from the options that the line has so far."""
    named = {each.name: ctx.params.get(each.name) for each in fields(Target)}
    given = {name: value for name, value in named.items() if value is not None}
    return Target(**{**given, "max_wait_s": 0.0})


def _fetch(ctx: typer.Context, path: str, **params: str | int) -> Any:
    """Read from the server of the line. Returns None if the server is missing or slow."""
    where = _read_target(ctx)
    if is_local(where) or not names_server(where):
        return None
    told: list[Any] = []

    def ask() -> None:
        try:
            with open_client(where, "none") as client:
                told.append(client.read(path, params))
        except Exception:  # as above
            return

    # Abandoned if it is too slow, because a lookup of a host or a keyring cannot be cancelled.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(MAX_WAIT_S)
    return told[0] if told else None


def _find_data_dir(ctx: typer.Context) -> Path | None:
    """Find the data directory of the line. Returns None if the line names a server."""
    given = ctx.params.get("data_dir")
    if given is not None:
        return Path(given)
    where = _read_target(ctx)
    if not is_local(where) and names_server(where):
        return None
    from toolkit.settings import Settings

    return Settings().data_dir


def _fetch_items(ctx: typer.Context, path: str, **params: str | int) -> list[dict[str, Any]]:
    found = _fetch(ctx, f"/{path}", **params)
    return [] if found is None else list(found["items"])


def _describe_record(record: dict[str, Any]) -> str:
    """Describe a record in a few words."""
    name = next((record[key] for key in _NAMES if record.get(key)), "")
    return f"{name} {record.get('status') or ''}".strip()


def make_id_completion(path: str, column: str = "id") -> Completion:
    """Make a completion of the newest ids of a resource.

    Args:
        path: path of the resource, below `/v1`.
        column: field to offer. Default: `id`.
    """

    @completion
    def complete(ctx: typer.Context, incomplete: str) -> Suggestions:  # noqa: ARG001 - as for all
        folder = _find_data_dir(ctx)
        if folder is None:
            return [
                (str(one[column]), _describe_record(one))
                for one in _fetch_items(ctx, path, limit=MAX_COMPLETIONS)
            ]
        from toolkit.store.maintenance.newest_ids import list_newest_ids

        return list_newest_ids(
            folder, path if column == "id" else f"{path} by {column}", MAX_COMPLETIONS
        )

    return complete


@completion
def own_ids(ctx: typer.Context, incomplete: str) -> Suggestions:
    """Complete the newest ids of the resource of the command's group."""
    group = str(ctx.parent.info_name) if ctx.parent else ""
    path = {
        "connections": "providers/connections",
        "keys": "account/keys",
        "workflow": "workflows",
    }.get(group, group)
    return make_id_completion(path)(ctx, incomplete)


@completion
def work_ids(ctx: typer.Context, incomplete: str) -> Suggestions:
    """Complete the newest ids of runs, workflows and tasks; a second id is of the first's kind."""
    first = str(ctx.params.get("a") or "").partition("_")[0]
    kinds = {"run": "runs", "wfl": "workflows", "tsk": "tasks"}
    paths = [kinds[first]] if first in kinds else list(kinds.values())
    return [one for path in paths for one in make_id_completion(path)(ctx, incomplete)]


@completion
def capabilities(ctx: typer.Context, incomplete: str) -> Suggestions:
    """Complete capabilities; with their versions once an @ was typed."""
    records = _fetch_items(ctx, "capabilities")
    if records:
        known = [(one["id"], one["version"], one["title"]) for one in records]
    else:
        from toolkit.capabilities import load_capabilities

        known = [(one.id, one.version, one.title) for one in load_capabilities()]
    if "@" in incomplete:
        return [(f"{name}@{version}", title) for name, version, title in known]
    return [(name, title) for name, _, title in known]


@completion
def fields_of_input(ctx: typer.Context, incomplete: str) -> Suggestions:  # noqa: ARG001 - as for all
    """Complete the input of the capability that the line names: `name=` for each field."""
    from toolkit.capabilities import load_capabilities

    name, _, version = str(ctx.params.get("name") or "").partition("@")
    record = _fetch(ctx, f"/capabilities/{name}" + (f"@{version}" if version else ""))
    if record is not None:
        return [(f"{field}=", "") for field in record["input_schema"]["properties"]]
    found = {one.id: one for one in load_capabilities()}  # the newest of each comes last
    return [(f"{field}=", "") for field in found[name].input_model.model_fields]


@completion
def providers(ctx: typer.Context, incomplete: str) -> Suggestions:  # noqa: ARG001 - as for all
    """Complete vendors."""
    records = _fetch_items(ctx, "providers")
    if records:
        return [(one["id"], one["title"]) for one in records]
    from toolkit.vendors import load_vendors

    return [(name, vendor.title) for name, vendor in load_vendors().items()]


@completion
def vendors_to_connect(ctx: typer.Context, incomplete: str) -> Suggestions:
    """Complete vendors, and `all` for all of them."""
    return [("all", "every one whose variable is set"), *providers(ctx, incomplete)]


@completion
def connected_vendors(ctx: typer.Context, incomplete: str) -> Suggestions:
    """Complete vendors, or the id of a connection once its beginning was typed."""
    if incomplete.startswith("prv_"):
        return make_id_completion("providers/connections")(ctx, incomplete)
    return providers(ctx, incomplete)


@completion
def statuses(ctx: typer.Context, incomplete: str) -> Suggestions:  # noqa: ARG001 - as for all
    """Complete the states of the work of the command's group."""
    from toolkit.contract.operations.work_queries import RunsQuery, TasksQuery, WorkflowsQuery

    known = {"tasks": TasksQuery, "workflows": WorkflowsQuery}
    group = str(ctx.parent.info_name) if ctx.parent else ""
    return [(status, "") for status in known.get(group, RunsQuery).STATUSES]


@completion
def nodes(ctx: typer.Context, incomplete: str) -> Suggestions:  # noqa: ARG001 - as for all
    """Complete the nodes of the workflow that the line names."""
    record = _fetch(ctx, f"/workflows/{ctx.params['id']}")
    return [(node["id"], node["capability"]) for node in record["nodes"]]


@completion
def gpus(ctx: typer.Context, incomplete: str) -> Suggestions:  # noqa: ARG001 - as for all
    """Complete the GPUs that a pod may have."""
    return [(one["id"], one["name"]) for one in _fetch_items(ctx, "catalog/gpus")]


@completion
def pools(ctx: typer.Context, incomplete: str) -> Suggestions:  # noqa: ARG001 - as for all
    """Complete the pools of GPUs that an endpoint may have."""
    return {one["pool"]: one["name"] for one in _fetch_items(ctx, "catalog/gpus")}.items()


@completion
def kinds_of_job(ctx: typer.Context, incomplete: str) -> Suggestions:  # noqa: ARG001 - as for all
    """Complete the kinds of job that the caller's own compute can do."""
    records = _fetch_items(ctx, "capabilities")
    return [(one["job"]["type"], one["title"]) for one in records if one.get("job")]
