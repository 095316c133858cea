"""Write what `docs/reference` lists of routes, client and commands; `--check` only compares.

What stands above the marker in a page is written by hand, and stays.
"""

import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

from typer.main import get_command

from toolkit.cli import app as command_line
from toolkit.cli.errors import EXIT_CODES
from toolkit.cli.options import Where
from toolkit.client import Client
from toolkit.client._sync import handles
from toolkit.contract.errors import ErrorCode
from toolkit.server import areas, auth
from toolkit.server.app import document

PAGES = Path(__file__).parent.parent / "docs" / "reference"
MARKER = "<!-- From here on: scripts/reference.py. -->\n"
SCOPES = {
    get_args(kind)[1].dependency: name
    for name, kind in (("read", auth.Reader), ("write", auth.Writer), ("admin", auth.Admin))
}


def text_of(thing: object) -> str:
    """The docstring of something up to its sections, on one line."""
    whole = re.split(
        r"\n\s*(?:Args|Raises|Attributes|Returns):|\n\s*>>>", inspect.getdoc(thing) or ""
    )
    return " ".join(whole[0].split())


def scopes_of_routes() -> dict[str, str]:
    """The scope that each operation needs; those that need no key are left out."""
    found = {}
    for module in pkgutil.iter_modules(areas.__path__):
        for route in import_module(f"{areas.__name__}.{module.name}").router.routes:
            for each in route.dependant.dependencies:
                if each.call in SCOPES:
                    found[route.operation_id] = SCOPES[each.call]
    return found


def http() -> Iterator[str]:
    """The routes, by area."""
    scopes = scopes_of_routes()
    operations = [
        (method, path, operation)
        for path, described in document()["paths"].items()
        for method, operation in described.items()
    ]
    keyed = [set(o["responses"]) for _, _, o in operations if o.get("security")]
    common = set.intersection(*keyed)
    yield f"Any may answer {', '.join(sorted(common))}; the last column has the other answers.\n"
    tags = dict.fromkeys(operation["tags"][0] for _, _, operation in operations)
    for tag in tags:
        yield f"## {tag}\n"
        yield "| route | operation | scope | answers |\n|---|---|---|---|"
        for method, path, operation in operations:
            if operation["tags"][0] == tag:
                name = operation["operationId"]
                answers = ", ".join(sorted(set(operation["responses"]) - common))
                yield (
                    f"| `{method.upper()} {path}`<br>{operation['description']} "
                    f"| `{name}` | {scopes.get(name, 'no key')} | {answers} |"
                )
        yield ""
    yield "## Error codes\n\n| code | status | what to do |\n|---|---|---|"
    for code in ErrorCode:
        yield f"| `{code.name}` | {code.http_status or 'on the record of work'} | {code.hint} |"


def signature_of(name: str, function: Any, made: str = "") -> str:
    """A call as one writes it, types without their modules."""
    signature = inspect.signature(function)
    own = [p for p in signature.parameters.values() if p.name != "self"]
    text = re.sub(r"\b(?:[A-Za-z_]\w*\.)+(?=[A-Za-z_])", "", str(signature.replace(parameters=own)))
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)  # an annotation that is written as text
    return f"`{name}{text.replace('~H', made)}`"


def methods_of(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods of a class."""
    for name, function in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith("_"):
            yield name, function


def client() -> Iterator[str]:
    """The areas of the client and their methods, then what these answer."""
    made = Client("http://service.invalid")
    offered = {name: area for name, area in vars(made).items() if not name.startswith("_")}
    yield "## The client\n"
    for name, function in methods_of(Client):
        yield f"- {signature_of(f'client.{name}', function)}: {text_of(function)}"
    for area_name, area in offered.items():
        yield f"\n## client.{area_name}\n"
        handle = getattr(area, "handle", None)
        for name, function in methods_of(type(area)):
            call = signature_of(
                f"client.{area_name}.{name}", function, handle.__name__ if handle else ""
            )
            yield f"- {call}: {text_of(function)}"
    yield "\n## What they answer\n"
    yield "Each has its `record`, `to_dict()` and `to_frame()`, and shows itself in a notebook.\n"
    kinds = {area.handle for area in offered.values() if hasattr(area, "handle")}
    for kind in sorted(kinds, key=lambda kind: str(kind.__name__)):
        own = [f"`{name}`" for name, value in inspect.getmembers(kind) if is_property(name, value)]
        calls = [
            f"`{name}()`" for name, function in methods_of(kind)
            if function.__module__ == handles.__name__
        ]  # fmt: skip
        yield f"- **{kind.__name__}**: {', '.join(own + calls)}"


def is_property(name: str, value: object) -> bool:
    """Whether a member of a class is a public property."""
    return isinstance(value, property) and not name.startswith("_")


def spelled(parameter: Any) -> str:
    """An argument or an option as one types it."""
    if parameter.param_type_name == "argument":
        name = (parameter.metavar or parameter.name).upper()
        return name if parameter.required else f"[{name}]"
    names = "/".join([*parameter.opts, *parameter.secondary_opts])
    return names if parameter.is_flag else f"{names} …"


def described(name: str, command: Any) -> Iterator[str]:
    """A command, and those below it."""
    below = getattr(command, "commands", None)
    if below is not None:
        yield f"\n## {name}\n\n{command.help}\n"
        for each, inner in below.items():
            yield from described(f"{name} {each}", inner)
        return
    shared = {option.name for option in fields(Where)} if command_is_shared(command) else set()
    own = [p for p in command.params if p.name not in shared and p.name != "help"]
    arguments = [spelled(p) for p in own if p.param_type_name == "argument"]
    yield f"- `{' '.join([name, *arguments])}`{'' if shared else ' (*here*)'}: {text(command.help)}"
    for parameter in own:
        if parameter.name != "id":
            yield f"  - `{spelled(parameter)}`: {text(parameter.help)}"


def command_is_shared(command: Any) -> bool:
    """Whether a command speaks to a service, with the options that all of those have."""
    return {option.name for option in fields(Where)} <= {p.name for p in command.params}


def text(help: str | None) -> str:  # noqa: A002 - as typer has it
    """A help text on one line."""
    return " ".join((help or "").split())


def cli() -> Iterator[str]:
    """The commands, by group."""
    root: Any = get_command(command_line)
    alone = {n: c for n, c in root.commands.items() if not hasattr(c, "commands")}
    groups = {n: c for n, c in root.commands.items() if n not in alone and not c.hidden}
    yield "## Exit codes\n\n| code | means |\n|---|---|"
    for code, meaning in EXIT_CODES.items():
        yield f"| {code} | {meaning} |"
    yield "\n## Where, and how it is shown\n"
    example = root.commands["health"]
    for parameter in example.params:
        if parameter.name in {option.name for option in fields(Where)}:
            yield f"- `{spelled(parameter)}`: {parameter.help}"
    yield "\nCommands marked *here* ask nothing of a service, and have options of their own only.\n"
    yield "## Commands of their own\n"
    for name, command in alone.items():
        yield from described(f"toolkit {name}", command)
    for name, command in groups.items():
        yield from described(f"toolkit {name}", command)


def main() -> int:
    """Write the pages, or check them."""
    stale = []
    for made in (http, client, cli):
        page = PAGES / f"{made.__name__}.md"
        old = page.read_text(encoding="utf-8")
        new = old.partition(MARKER)[0] + MARKER + "\n" + "\n".join(made()).strip() + "\n"
        if new != old:
            stale.append(page.name)
            if "--check" not in sys.argv:
                page.write_text(new, encoding="utf-8")
    if stale and "--check" in sys.argv:
        print(f"stale, run scripts/fix: docs/reference/{', docs/reference/'.join(stale)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
