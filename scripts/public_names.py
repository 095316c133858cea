"""Keep the list of the names that callers and stored data depend on: `tests/public_names.txt`.

`python -m scripts.public_names` adds new names. It never removes a name: a change that removes or
renames one must delete the old line by hand, so that no rename goes unnoticed.
`tests/test_surface.py` compares the list to the code.
"""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

import toolkit
from scripts.openapi_document.document import build_openapi
from toolkit.cli import app
from toolkit.cli.options import READ_TARGET_OPTIONS
from toolkit.client._client_base import Area
from toolkit.contract.errors import ErrorCode
from toolkit.settings import Settings, Timeouts, VendorSettings
from toolkit.store.tables import metadata

ADDRESS = "http://service.invalid"
LIST = Path(__file__).parent.parent / "tests" / "public_names.txt"


def find_python_names() -> Iterator[str]:
    """Find the exports, the areas of a client, their public members, and the parameters."""
    owners: dict[str, Any] = {name: getattr(toolkit, name) for name in toolkit.__all__}
    client = toolkit.Client(ADDRESS)
    for name, _ in inspect.getmembers(toolkit.Client, lambda value: isinstance(value, Area)):
        owners[f"Client.{name}"] = type(getattr(client, name))
    for name, owner in owners.items():
        yield f"python {name}"
        for member_name, member in inspect.getmembers(owner):
            if member_name == "__init__" or not member_name.startswith("_"):
                yield f"python {name}.{member_name}"
                yield from find_parameters(f"{name}.{member_name}", member)


def find_parameters(name: str, member: Any) -> Iterator[str]:
    """Find the parameters of a function that the toolkit defines."""
    is_own = getattr(member, "__module__", "").startswith("toolkit")
    if is_own and (inspect.isfunction(member) or inspect.ismethod(member)):
        parameters = inspect.signature(member).parameters
        yield from (f"python {name}({key})" for key in parameters if key != "self")


def find_wire_names() -> Iterator[str]:
    """Find the operations, parameters, models, their members, and enum values of the wire."""
    document = build_openapi()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield f"wire {method.upper()} {path} {operation['operationId']}"
            yield from find_members(f"{method.upper()} {path}", operation)
    for part, components in document["components"].items():
        for name, component in components.items():
            yield f"wire {part} {name}"
            yield from find_members(f"{name}", component)


def find_members(owner: str, schema: Any) -> Iterator[str]:
    """Find the members, enum values and parameters anywhere in a schema."""
    if isinstance(schema, list):
        for part in schema:
            yield from find_members(owner, part)
    elif isinstance(schema, dict):
        if isinstance(schema.get("in"), str):
            yield f"wire {owner} {schema['in']} {schema['name']}"
        for value in [*schema.get("enum", ()), schema.get("const")]:
            if isinstance(value, str):
                yield f"wire {owner} = {value}"
        properties = schema.get("properties", {})
        if isinstance(properties, dict):
            yield from (f"wire {owner}.{name}" for name in properties)
        for key, part in schema.items():
            if key not in ("example", "examples", "default"):
                yield from find_members(owner, part)


def find_command_names(command: Any, path: str) -> Iterator[str]:
    """Find the commands below a command, with their options and arguments.

    Options that most commands share, such as `--json`, are named once.
    """
    yield f"command {path}"
    for parameter in command.params:
        is_shared = parameter.name in READ_TARGET_OPTIONS
        for name in [*parameter.opts, *parameter.secondary_opts]:
            yield f"command {'toolkit …' if is_shared else path} {name}"
    for name, child in getattr(command, "commands", {}).items():
        yield from find_command_names(child, f"{path} {name}")


def find_names() -> list[str]:
    """Find all names, sorted."""
    names = {
        *find_python_names(),
        *find_wire_names(),
        *find_command_names(get_command(app), "toolkit"),
        *(f"error {code.name}" for code in ErrorCode),
    }
    for kind in (Settings, VendorSettings, Timeouts):
        names |= {f"setting {kind.__name__}.{field}" for field in kind.model_fields}
    for table in metadata.tables.values():
        names |= {f"column {table.name}.{column.name}" for column in table.columns}
    return sorted(names)


def main() -> None:
    """Add the new names to the list."""
    listed = LIST.read_text(encoding="utf-8").splitlines() if LIST.exists() else []
    LIST.write_text("\n".join(sorted({*listed, *find_names()})) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
