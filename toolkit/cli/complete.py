"""Shell completion: values that are offered after the Tab key, by the type of the parameter.

Closed sets are `Literal` types, and complete by themselves. The values here are looked up: at the
server that the line names so far, or in the local data directory. A lookup that fails, or takes too
long, offers nothing, so that it does not disturb typing.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import typer

if TYPE_CHECKING:
    from toolkit.cli.options import Where

PATIENCE_S = 1.5  # for a server
MOST = 50
Found: TypeAlias = Iterable[tuple[str, str]]
Completion: TypeAlias = Callable[[typer.Context, str], list[tuple[str, str]]]
# The fields that describe a record, beside its state.
_NAMES = ("name", "title", "provider", "objective", "capability", "media_type")


def _quietly(find: Callable[[typer.Context, str], Found]) -> Completion:
    """Make a completion of a function: of what it finds, that which begins as was typed."""

    def complete(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
        before = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        try:
            found = list(find(ctx, incomplete))
        except Exception:  # no error may disturb typing
            return []
        finally:
            logging.disable(before)
        return [(value, said) for value, said in found if value.startswith(incomplete)]

    return complete


def _where(ctx: typer.Context) -> "Where":
    """Read the target options that the line has so far."""
    from toolkit.cli.options import WhereToLook

    named = {each.name: ctx.params.get(each.name) for each in fields(WhereToLook)}
    given = {name: value for name, value in named.items() if value is not None}
    return WhereToLook(**{**given, "max_wait_s": 0.0})


def _read(ctx: typer.Context, path: str, **params: str | int) -> Any:
    """Read from the server that the line names; none where it names none or is too slow."""
    from toolkit.cli.options import connected, is_local, names_server

    where = _where(ctx)
    if is_local(where) or not names_server(where):
        return None
    told: list[Any] = []

    def ask() -> None:
        try:
            with connected(where, "none") as client:
                told.append(client.read(path, params))
        except Exception:  # as above
            return

    # Abandoned when it takes too long: a lookup of a host, or in a keyring, cannot be cancelled.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(PATIENCE_S)
    return told[0] if told else None


def _folder(ctx: typer.Context) -> Path | None:
    """Find the data directory that the line names; none where it names a server."""
    from toolkit.cli.options import is_local, names_server

    given = ctx.params.get("data_dir")
    if given is not None:
        return Path(given)
    where = _where(ctx)
    if not is_local(where) and names_server(where):
        return None
    from toolkit.settings import Settings

    return Settings().data_dir


def _items(ctx: typer.Context, path: str, **params: str | int) -> list[dict[str, Any]]:
    found = _read(ctx, f"/{path}", **params)
    return [] if found is None else list(found["items"])


def _said(record: dict[str, Any]) -> str:
    """Describe a record in a few words."""
    name = next((record[key] for key in _NAMES if record.get(key)), "")
    return f"{name} {record.get('status') or ''}".strip()


def ids_of(path: str, column: str = "id") -> Completion:
    """Make a completion of the newest ids of a resource.

    Args:
        path: where they are, below `/v1`.
        column: the field to offer, where it is not the id.
    """

    def find(ctx: typer.Context, incomplete: str) -> Found:  # noqa: ARG001 - as for all
        folder = _folder(ctx)
        if folder is None:
            return [(str(one[column]), _said(one)) for one in _items(ctx, path, limit=MOST)]
        from toolkit.store.glance import newest_ids

        return newest_ids(folder, path if column == "id" else f"{path} by {column}", MOST)

    return _quietly(find)


def _of_group(ctx: typer.Context, incomplete: str) -> Found:
    """Complete the newest ids of the resource whose group the command stands in."""
    group = str(ctx.parent.info_name) if ctx.parent else ""
    path = {
        "connections": "providers/connections",
        "keys": "account/keys",
        "workflow": "workflows",
    }.get(group, group)
    return ids_of(path)(ctx, incomplete)


def _capabilities(ctx: typer.Context, incomplete: str) -> Found:
    """Complete capabilities; with their versions once an @ was typed."""
    records = _items(ctx, "capabilities")
    if records:
        known = [(one["id"], one["version"], one["title"]) for one in records]
    else:
        from toolkit.capabilities import load_capabilities

        known = [(one.id, one.version, one.title) for one in load_capabilities()]
    if "@" in incomplete:
        return [(f"{name}@{version}", title) for name, version, title in known]
    return [(name, title) for name, _, title in known]


def _fields(ctx: typer.Context, incomplete: str) -> Found:  # noqa: ARG001 - as for all
    """Complete the input of the capability that the line names: `name=` for each field."""
    from toolkit.capabilities import load_capabilities

    name, _, version = str(ctx.params.get("name") or "").partition("@")
    record = _read(ctx, f"/capabilities/{name}" + (f"@{version}" if version else ""))
    if record is not None:
        return [(f"{field}=", "") for field in record["input_schema"]["properties"]]
    found = {one.id: one for one in load_capabilities()}  # the newest of each comes last
    return [(f"{field}=", "") for field in found[name].input_model.model_fields]


def _providers(ctx: typer.Context, incomplete: str) -> Found:  # noqa: ARG001 - as for all
    """Complete vendors."""
    records = _items(ctx, "providers")
    if records:
        return [(one["id"], one["title"]) for one in records]
    from toolkit.vendors import load_vendors

    return [(name, vendor.title) for name, vendor in load_vendors().items()]


def _fresh(ctx: typer.Context, incomplete: str) -> Found:
    """Complete vendors, and `all` for all of them."""
    return [("all", "every one whose variable is set"), *_providers(ctx, incomplete)]


def _connected(ctx: typer.Context, incomplete: str) -> Found:
    """Complete vendors, or the id of a connection once its beginning was typed."""
    if incomplete.startswith("prv_"):
        return ids_of("providers/connections")(ctx, incomplete)
    return _providers(ctx, incomplete)


def _nodes(ctx: typer.Context, incomplete: str) -> Found:  # noqa: ARG001 - as for all
    """Complete the nodes of the workflow that the line names."""
    record = _read(ctx, f"/workflows/{ctx.params['id']}")
    return [(node["id"], node["capability"]) for node in record["nodes"]]


def _gpus(ctx: typer.Context, incomplete: str) -> Found:  # noqa: ARG001 - as for all
    """Complete the GPUs that a pod may have."""
    return [(one["id"], one["name"]) for one in _items(ctx, "catalog/gpus")]


def _pools(ctx: typer.Context, incomplete: str) -> Found:  # noqa: ARG001 - as for all
    """Complete the pools of GPUs that an endpoint may have."""
    return {one["pool"]: one["name"] for one in _items(ctx, "catalog/gpus")}.items()


def _kinds(ctx: typer.Context, incomplete: str) -> Found:  # noqa: ARG001 - as for all
    """Complete the kinds of job that a compute of one's own does."""
    records = _items(ctx, "capabilities")
    return [(one["job"]["type"], one["title"]) for one in records if one.get("job")]


def _variables(ctx: typer.Context, incomplete: str) -> Found:  # noqa: ARG001 - as for all
    """Complete the names of the variables that are set."""
    return [(name, "") for name in sorted(os.environ)]


def _profiles(ctx: typer.Context, incomplete: str) -> Found:  # noqa: ARG001 - as for all
    """Complete the names of profiles; no key is read for it."""
    from toolkit.profiles.files import profile_names

    return [(name, "") for name in profile_names()]


capabilities = _quietly(_capabilities)
connected_vendors = _quietly(_connected)
fields_of_input = _quietly(_fields)
gpus = _quietly(_gpus)
kinds_of_job = _quietly(_kinds)
nodes = _quietly(_nodes)
own_ids = _quietly(_of_group)
pools = _quietly(_pools)
profiles = _quietly(_profiles)
providers = _quietly(_providers)
variables = _quietly(_variables)
vendors_to_connect = _quietly(_fresh)
