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
    """Read the engine or server from the options that the command line has so far."""
    values = {field.name: ctx.params.get(field.name) for field in fields(Target)}
    options = {name: value for name, value in values.items() if value is not None}
    return Target(**{**options, "max_wait_s": 0.0})


def _fetch(ctx: typer.Context, path: str, **params: str | int) -> Any:
    """Read from the server that the command line names; None if no server answers in time."""
    target = _read_target(ctx)
    if is_local(target) or not names_server(target):
        return None
    replies: list[Any] = []

    def ask() -> None:
        try:
            with open_client(target, "none") as client:
                replies.append(client.read(path, params))
        except Exception:  # as above
            return

    # Abandoned if it is too slow, because a lookup of a host or a keyring cannot be cancelled.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(MAX_WAIT_S)
    return replies[0] if replies else None


def _find_data_dir(ctx: typer.Context) -> Path | None:
    """Find the data directory of the command line. Returns None if it names a server."""
    option = ctx.params.get("data_dir")
    if option is not None:
        return Path(option)
    target = _read_target(ctx)
    if not is_local(target) and names_server(target):
        return None
    from toolkit.settings import Settings

    return Settings().data_dir


def _fetch_items(ctx: typer.Context, path: str, **params: str | int) -> list[dict[str, Any]]:
    page = _fetch(ctx, f"/{path}", **params)
    return [] if page is None else list(page["items"])


def _describe_record(record: dict[str, Any]) -> str:
    name = next((record[key] for key in _NAMES if record.get(key)), "")
    return f"{name} {record.get('status') or ''}".strip()


def make_id_completion(path: str, column: str = "id") -> Completion:
    """Make a completion of the newest ids of a resource."""

    @completion
    def complete(ctx: typer.Context, incomplete: str) -> Suggestions:  # noqa: ARG001 - as for all
        folder = _find_data_dir(ctx)
        if folder is None:
            return [
                (str(record[column]), _describe_record(record))
                for record in _fetch_items(ctx, path, limit=MAX_COMPLETIONS)
            ]
        from toolkit.store.maintenance.newest_ids import list_newest_ids

        return list_newest_ids(
            folder, path if column == "id" else f"{path} by {column}", MAX_COMPLETIONS
        )

    return complete


@completion
def own_ids(ctx: typer.Context, incomplete: str) -> Suggestions:
    """Offer the newest ids of the resource of the command's group, such as `runs`."""
    group = str(ctx.parent.info_name) if ctx.parent else ""
    path = {
        "connections": "providers/connections",
        "keys": "account/keys",
        "workflow": "workflows",
    }.get(group, group)
    return make_id_completion(path)(ctx, incomplete)


@completion
def work_ids(ctx: typer.Context, incomplete: str) -> Suggestions:
    """Offer the newest ids of runs, workflows and tasks; for a second id, only the first's kind."""
    first = str(ctx.params.get("a") or "").partition("_")[0]
    kinds = {"run": "runs", "wfl": "workflows", "tsk": "tasks"}
    paths = [kinds[first]] if first in kinds else list(kinds.values())
    return [
        suggestion for path in paths for suggestion in make_id_completion(path)(ctx, incomplete)
    ]


@completion
def capabilities(ctx: typer.Context, incomplete: str) -> Suggestions:
    """Offer the capabilities by name, or with their versions once an `@` was typed."""
    records = _fetch_items(ctx, "capabilities")
    if records:
        rows = [(record["id"], record["version"], record["title"]) for record in records]
    else:
        from toolkit.capabilities import load_capabilities

        rows = [
            (capability.id, capability.version, capability.title)
            for capability in load_capabilities()
        ]
    if "@" in incomplete:
        return [(f"{name}@{version}", title) for name, version, title in rows]
    return [(name, title) for name, _, title in rows]


@completion
def fields_of_input(ctx: typer.Context, incomplete: str) -> Suggestions:  # noqa: ARG001 - as for all
    """Offer `name=` for each input field of the capability that the command line names."""
    from toolkit.capabilities import load_capabilities

    name, _, version = str(ctx.params.get("name") or "").partition("@")
    record = _fetch(ctx, f"/capabilities/{name}" + (f"@{version}" if version else ""))
    if record is not None:
        return [(f"{field}=", "") for field in record["input_schema"]["properties"]]
    # The newest version of each capability comes last.
    newest = {capability.id: capability for capability in load_capabilities()}
    return [(f"{field}=", "") for field in newest[name].input_model.model_fields]


@completion
def providers(ctx: typer.Context, incomplete: str) -> Suggestions:  # noqa: ARG001 - as for all
    """Offer the ids of the vendors, those of the server if it can be reached in time."""
    records = _fetch_items(ctx, "providers")
    if records:
        return [(record["id"], record["title"]) for record in records]
    from toolkit.vendors import load_vendors

    return [(name, vendor.title) for name, vendor in load_vendors().items()]


@completion
def providers_and_models(ctx: typer.Context, incomplete: str) -> Suggestions:
    """Complete vendors, or their models once a / was typed."""
    if "/" not in incomplete:
        return providers(ctx, incomplete)
    records = _fetch_items(ctx, "catalog/models")
    return [(f"{record['provider']}/{record['model']}", record["kind"]) for record in records]


@completion
def vendors_to_connect(ctx: typer.Context, incomplete: str) -> Suggestions:
    """Offer the ids of the vendors, and `all` for all of them."""
    return [("all", "all vendors whose variable is set"), *providers(ctx, incomplete)]


@completion
def connected_vendors(ctx: typer.Context, incomplete: str) -> Suggestions:
    """Offer the ids of all vendors, or the ids of connections once `prv_` was typed."""
    if incomplete.startswith("prv_"):
        return make_id_completion("providers/connections")(ctx, incomplete)
    return providers(ctx, incomplete)


@completion
def statuses(ctx: typer.Context, incomplete: str) -> Suggestions:  # noqa: ARG001 - as for all
    """Offer the states of the work of the command's group, such as `tasks`."""
    from toolkit.contract.operations.work_queries import RunsQuery, TasksQuery, WorkflowsQuery

    queries = {"tasks": TasksQuery, "workflows": WorkflowsQuery}
    group = str(ctx.parent.info_name) if ctx.parent else ""
    return [(status, "") for status in queries.get(group, RunsQuery).STATUSES]


@completion
def nodes(ctx: typer.Context, incomplete: str) -> Suggestions:  # noqa: ARG001 - as for all
    """Offer the nodes of the workflow that the command line names."""
    record = _fetch(ctx, f"/workflows/{ctx.params['id']}")
    return [(node["id"], node["capability"]) for node in record["nodes"]]


@completion
def gpus(ctx: typer.Context, incomplete: str) -> Suggestions:  # noqa: ARG001 - as for all
    """Offer the GPUs that a pod may have, by the catalogue of the server."""
    return [(gpu["id"], gpu["name"]) for gpu in _fetch_items(ctx, "catalog/gpus")]


@completion
def pools(ctx: typer.Context, incomplete: str) -> Suggestions:  # noqa: ARG001 - as for all
    """Offer the pools of GPUs that an endpoint may have, by the catalogue of the server."""
    return {gpu["pool"]: gpu["name"] for gpu in _fetch_items(ctx, "catalog/gpus")}.items()


@completion
def kinds_of_job(ctx: typer.Context, incomplete: str) -> Suggestions:  # noqa: ARG001 - as for all
    """Offer the types of jobs that the caller's own compute can do, as the server lists them."""
    records = _fetch_items(ctx, "capabilities")
    return [(record["job"]["type"], record["title"]) for record in records if record.get("job")]
