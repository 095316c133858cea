"""Write the lists in `docs/reference` and `docs/limits.md` from the code; `--check` only compares.

The part of a page above the marker is written by hand and stays.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from typer.main import get_command

from scripts.openapi_document.document import build_openapi
from toolkit.cli import app as command_line
from toolkit.cli.errors import EXIT_CODES
from toolkit.cli.options import TARGET_OPTIONS
from toolkit.client import Client, RecordView
from toolkit.client._graph_view import GraphView
from toolkit.contract.errors import ErrorCode, get_error_class
from toolkit.contract.operations.definitions import ApiOperation
from toolkit.contract.operations.table import OPERATIONS
from toolkit.engine import Registry
from toolkit.planning.review.card_checks import CARD_CHECKS
from toolkit.planning.review.expectation_checks import EXPECTATION_CHECKS
from toolkit.planning.review.node_checks import (
    check_deliverables,
    check_media,
    check_shape,
    check_text_variety,
)
from toolkit.planning.review.picture_checks import PICTURE_CHECKS
from toolkit.planning.review.research_checks import RESEARCH_CHECKS
from toolkit.planning.review.sound_checks import SOUND_CHECKS
from toolkit.planning.review.text_checks import TEXT_CHECKS
from toolkit.planning.review.text_hints import TEXT_HINTS
from toolkit.plugins import Model
from toolkit.setting_types import Limit
from toolkit.settings import Settings, Timeouts, VendorSettings

DOCS = Path(__file__).parent.parent / "docs"
CHECKS = {
    "Any result": (check_shape, check_deliverables, check_media, check_text_variety),
    "Expectations of a plan": EXPECTATION_CHECKS,
    "Texts, for certain": TEXT_CHECKS,
    "Texts, as hints to the judge": TEXT_HINTS,
    "Research": RESEARCH_CHECKS,
    "Sounds": SOUND_CHECKS,
    "Pictures": PICTURE_CHECKS,
    "Cards": CARD_CHECKS,
}
COUNTED = {"request": "each one", "process": "each process", "service": "all processes"}
WITH_MODULE = re.compile(r"\b(?:[A-Za-z_]\w*\.)+(?=[A-Za-z_])")
MARKER = "<!-- From here on: scripts/reference.py. -->\n"


def text_of(thing: object) -> str:
    """Return the docstring of an object up to its sections, on one line."""
    parts = re.split(
        r"\n\s*(?:Args|Raises|Attributes|Returns):|\n\s*>>>", inspect.getdoc(thing) or ""
    )
    return " ".join(parts[0].split())


def link_model(model: type) -> str:
    """Return a link to a contract model on the page of models."""
    return f"[{model.__name__}](models.md#{model.__name__.lower()})"


def bodies(operation: ApiOperation[Any, Any]) -> str:
    """Return the body that an operation takes, and the record or page that it gives."""
    phrases = []
    if operation.body is not None:
        phrases.append(f"takes {link_model(operation.body)}")
    if operation.form != "bytes":
        a_page = "" if operation.form == "record" else "a page of "
        phrases.append(f"gives {a_page}{link_model(operation.answer)}")
    return f"<br>({', '.join(phrases)})" if phrases else ""


def statuses(operation: ApiOperation[Any, Any]) -> set[str]:
    """Return every status that an operation can answer with."""
    return set(build_openapi()["paths"][operation.path][operation.method.lower()]["responses"])


def http() -> Iterator[str]:
    """Yield the operations, by heading."""
    common = set.intersection(
        *(statuses(operation) for operation in OPERATIONS if operation.scope is not None)
    )
    yield f"Any may answer {', '.join(sorted(common))}; the last column has the other answers.\n"
    for tag, operations in groupby(OPERATIONS, key=lambda operation: operation.resource.tag):
        yield f"## {tag}\n"
        yield "| route | operation | scope | answers |\n|---|---|---|---|"
        for operation in operations:
            yield (
                f"| `{operation.method} {operation.path}`<br>"
                f"{operation.summary}{bodies(operation)} "
                f"| `{operation.id}` | {operation.scope or 'no key'} "
                f"| {', '.join(sorted(statuses(operation) - common))} |"
            )
        yield ""


def errors() -> Iterator[str]:
    """Yield the table of error codes."""
    yield "| code | HTTP | exception | retry? | what to do |\n|---|---|---|---|---|"
    for code in ErrorCode:
        status = code.http_status or "on the record of work"
        again = "yes" if code.retryable else "no"
        raised = get_error_class(code).__name__
        yield f"| `{code.name}` | {status} | `{raised}` | {again} | {code.hint} |"


def attributes_of(text: str) -> dict[str, str]:
    """Return the description of each attribute in a docstring."""
    section = re.search(r"\n\s*Attributes:\n(.*?)(?:\n\s*\n|\Z)", text, re.S)
    descriptions: dict[str, str] = {}
    names: list[str] = []
    for line in section.group(1).splitlines() if section else []:
        match = re.match(r"\s*((?:\w+, )*\w+): (.*)", line)
        if match:
            names = match.group(1).split(", ")
            descriptions |= dict.fromkeys(names, match.group(2))
        else:
            descriptions |= {name: f"{descriptions[name]} {line.strip()}" for name in names}
    return descriptions


def default_of(value: object) -> str:
    """Return a default as it is written in code, or an empty text."""
    if value in (None, "", frozenset(), {}, []):
        return ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{text}`"


def settings() -> Iterator[str]:
    """Yield every setting, and the settings of vendors and timeouts."""
    for kind in (Settings, VendorSettings, Timeouts):
        descriptions = attributes_of(inspect.getdoc(kind) or "")
        yield f"\n## {kind.__name__}\n\n{text_of(kind)}\n"
        yield "| setting | type | default | description |\n|---|---|---|---|"
        for name, field in kind.model_fields.items():
            default = field.get_default(call_default_factory=True)
            default_text = "" if isinstance(default, BaseModel) else default_of(default)
            what = (field.description or descriptions[name]).rstrip(".")
            yield f"| `{name}` | {type_of(field.annotation)} | {default_text} | {what} |"


def limits() -> Iterator[str]:
    """Yield every setting that is a limit, by its scope."""
    rows = []
    for prefix, kind in (("", Settings), ("vendors.<id>.", VendorSettings)):
        for name, field in kind.model_fields.items():
            marks = [mark for mark in field.metadata if isinstance(mark, Limit)]
            rows += [(mark, prefix + name, field) for mark in marks]
    yield "| scope | setting | default | description | counted in | beyond it | algorithm |"
    yield "|---|---|---|---|---|---|---|"
    for mark, name, field in sorted(rows, key=lambda row: row[0].scope.lower()):
        beyond = mark.beyond
        if isinstance(beyond, ErrorCode):
            beyond = f"`{beyond.name}`" + (f" ({beyond.http_status})" if beyond.http_status else "")
        cells = mark.scope, f"`{name}`", default_of(field.default), field.description
        yield f"| {' | '.join([*cells, COUNTED[mark.counted], beyond, mark.algorithm])} |"


def providers() -> Iterator[str]:
    """Yield every provider, with a table of its models."""
    registry = Registry.load()
    for vendor in registry.vendors.values():
        kinds = {operation.kind for operation in vendor.operations}
        offered = [
            f"`{capability.id}`"
            for capability in registry.list_newest()
            if capability.operation and capability.operation.kind in kinds
        ]
        addresses = ", ".join(f"`{url}`" for url in vendor.base_urls.values())
        yield f"\n## {vendor.title}\n"
        yield f"- id: `{vendor.id}`{f', label {vendor.label}' if vendor.label else ''}"
        yield f"- variable: `{vendor.variable}`{' (not needed)' if vendor.is_local else ''}"
        yield f"- base URL: {addresses}"
        yield f"- capabilities: {', '.join(offered)}\n"
        yield "| model | abilities | prices | source |\n|---|---|---|---|"
        for model in vendor.models:
            mark = ", default" if model.default else ""
            yield (
                f"| `{model.id}` ({model.kind}{mark}) | {', '.join(sorted(model.abilities))} "
                f"| {list_prices(model)} | {model.source}, {model.as_of} |"
            )


def list_prices(model: Model) -> str:
    """Return the prices of a model as a text, each with its unit."""
    prices = []
    for unit, usd in model.prices.items():
        is_per_million = unit.endswith(("tokens", "characters"))
        amount = format(usd * (1_000_000 if is_per_million else 1), "f")
        prices.append(f"{unit.replace('_', ' ')} {amount.rstrip('0').rstrip('.') or '0'}")
    tiers = f"; more above {model.tiers[0].above:,} input tokens" if model.tiers else ""
    return "<br>".join(prices) + tiers


def checks() -> Iterator[str]:
    """Yield the checks of the reviewer, by kind of result."""
    for title, functions in CHECKS.items():
        if not functions:
            continue
        yield f"\n## {title}\n\n| check | description |\n|---|---|"
        for function in functions:
            name = function.__name__.removeprefix("check_").replace("_", " ")
            yield f"| {name} | {text_of(function).rstrip('.')} |"


def type_of(annotation: Any) -> str:
    """Return a type without its modules and without `None`."""
    # `get_type_hints` removes `Annotated` at every depth.
    annotation = get_type_hints(type("", (), {"__annotations__": {"field": annotation}}))["field"]
    text = annotation.__name__ if isinstance(annotation, type) and not get_args(annotation) else ""
    text = text or WITH_MODULE.sub("", str(annotation))
    text = re.sub(r"^Optional\[(.*)\]$", r"\1", text)
    if values := re.fullmatch(r"Literal\[(.*)\]", text):
        return values.group(1).replace("'", "`")
    return f"`{text.replace(' | None', '')}`"


def models() -> Iterator[str]:
    """Yield the models of bodies and responses, in alphabetical order."""
    for name, schema in sorted(build_openapi()["components"]["schemas"].items()):
        if name.startswith(("Envelope_", "Page")) or "properties" not in schema:
            continue
        doc = inspect.cleandoc(schema.get("description", ""))
        descriptions = attributes_of(f"\n{doc}")
        yield f"\n## {name}\n\n{' '.join(doc.partition('Attributes:')[0].split())}\n"
        yield "| field | type | description |\n|---|---|---|"
        needed = schema.get("required", [])
        for field, kind in schema["properties"].items():
            what = (kind.get("description") or descriptions.get(field, "")).rstrip(".")
            is_required = schema.get("additionalProperties") is False and field in needed
            text = schema_type(kind) + (", required" if is_required else "")
            yield f"| `{field}` | {text} | {what} |"


def schema_type(schema: dict[str, Any]) -> str:
    """Return a schema's type, with links to models, its values if it has few, and its default."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        kinds = [schema_type(kind) for kind in schema["anyOf"] if kind.get("type") != "null"]
        null = len(kinds) < len(schema["anyOf"])
        return " or ".join([*kinds, *(["null"] if null else [])])
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return ", ".join(f"`{value}`" for value in values) + describe_default(schema)
    if schema.get("type") == "array":
        return f"list of {schema_type(schema['items'])}"
    inner = schema.get("additionalProperties")
    if isinstance(inner, dict):
        return f"object of {schema_type(inner)}"
    text = str(schema.get("type", "any value"))
    low, high = schema.get("minimum"), schema.get("maximum")
    text += f", {low} to {high}" if low is not None and high is not None else ""
    text += f", at most {schema['maxLength']} characters" if "maxLength" in schema else ""
    return text + describe_default(schema)


def describe_default(schema: dict[str, Any]) -> str:
    """Return the default of a field as a text."""
    default = default_of(schema.get("default"))
    return f"; default {default}" if default else ""


def answers_of(kind: type) -> dict[str, str]:
    """Return the types that the shared calls of both clients return, by type variable."""
    types: dict[str, str] = {}
    for base in kind.__mro__:
        for generic in vars(base).get("__orig_bases__", ()):
            variables = getattr(get_origin(generic), "__parameters__", ())
            for variable, argument in zip(variables, get_args(generic), strict=False):
                answer = get_args(argument)[0] if get_origin(argument) is Annotated else argument
                if not isinstance(answer, TypeVar):
                    text = getattr(answer, "__forward_arg__", None) or inspect.formatannotation(
                        answer
                    )
                    types.setdefault(str(variable), WITH_MODULE.sub("", text))
    return types


def signature_of(name: str, function: Any, owner: type, handle: str = "") -> str:
    """Return a call as a user writes it, with types without their modules."""
    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters.values() if p.name != "self"]
    text = WITH_MODULE.sub("", str(signature.replace(parameters=parameters)))
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)  # an annotation that is written as text
    for variable, kind in (answers_of(owner) | ({"~H": handle} if handle else {})).items():
        text = text.replace(variable, kind)
    return f"`{name}{text}`"


def methods_of(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods of a class."""
    for name, function in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith("_"):
            yield name, function


def client() -> Iterator[str]:
    """Yield the areas of the client and their methods, then the handles that they return."""
    toolkit_client = Client("http://service.invalid")
    offered = {
        name: getattr(toolkit_client, name)
        for kind in Client.__mro__  # in the order in which each is defined
        for name, value in vars(kind).items()
        if isinstance(value, cached_property)
    }
    yield "## The client\n"
    for name, function in methods_of(Client):
        yield f"- {signature_of(f'client.{name}', function, Client)}<br>{text_of(function)}"
    for area_name, area in offered.items():
        yield f"\n## client.{area_name}\n"
        handle = getattr(area, "handle", None)
        for name, function in methods_of(type(area)):
            made_here = handle.__name__ if handle else ""
            call = signature_of(f"client.{area_name}.{name}", function, type(area), made_here)
            yield f"- {call}<br>{text_of(function)}"
    yield "\n## Handles\n"
    yield "Each handle has `record`, `to_dict()` and `to_frame()`, and a display in notebooks.\n"
    kinds = {area.handle for area in offered.values() if hasattr(area, "handle")}
    for kind in sorted(kinds, key=lambda kind: str(kind.__name__)):
        properties = [
            f"`{name}`" for name, value in inspect.getmembers(kind) if is_property(name, value)
        ]
        calls = [
            f"`{name}()`" for name, function in methods_of(kind)
            if not (hasattr(RecordView, name) or hasattr(GraphView, name))
        ]  # fmt: skip
        yield f"- **{kind.__name__}**: {', '.join(properties + calls)}"


def is_property(name: str, value: object) -> bool:
    """Return whether a member of a class is a public property."""
    return isinstance(value, property) and not name.startswith("_")


def spell_parameter(parameter: Any) -> str:
    """Return an argument or an option as a user types it."""
    choices = "|".join(map(str, getattr(parameter.type, "choices", ())))
    if parameter.param_type_name == "argument":
        name = choices or (parameter.metavar or parameter.name).upper()
        return name if parameter.required else f"[{name}]"
    names = "/".join([*parameter.opts, *parameter.secondary_opts])
    return names if parameter.is_flag else f"{names} {choices or '…'}"


def describe_command(name: str, command: Any) -> Iterator[str]:
    """Yield a command and its subcommands."""
    below = getattr(command, "commands", None)
    if below is not None:
        yield f"\n## {name}\n\n{command.help}\n"
        for child, inner in below.items():
            yield from describe_command(f"{name} {child}", inner)
        return
    shared = set(TARGET_OPTIONS) if command_is_shared(command) else set()
    hidden = {p.name for p in command.params if getattr(p, "hidden", False)}
    parameters = [p for p in command.params if p.name not in shared | hidden | {"help"}]
    arguments = [spell_parameter(p) for p in parameters if p.param_type_name == "argument"]
    marker = "" if shared else " (*here*)"
    yield f"- `{' '.join([name, *arguments])}`{marker}<br>{text(command.help)}"
    for parameter in parameters:
        if parameter.name != "id":
            yield f"  - `{spell_parameter(parameter)}`: {text(parameter.help)}"


def command_is_shared(command: Any) -> bool:
    """Return whether a command calls a service, with the options that all such commands share."""
    return set(TARGET_OPTIONS) <= {p.name for p in command.params}


def text(help: str | None) -> str:
    """Return a help text on one line."""
    return " ".join((help or "").split())


def cli() -> Iterator[str]:
    """Yield the commands, by group."""
    root: Any = get_command(command_line)
    alone = {n: c for n, c in root.commands.items() if not hasattr(c, "commands")}
    groups = {n: c for n, c in root.commands.items() if n not in alone and not c.hidden}
    yield "## Exit codes\n\n| code | means |\n|---|---|"
    for code, meaning in EXIT_CODES.items():
        yield f"| {code} | {meaning} |"
    yield "\n## Connection and output\n"
    example = root.commands["health"]
    for parameter in example.params:
        if parameter.name in TARGET_OPTIONS:
            yield f"- `{spell_parameter(parameter)}`: {parameter.help}"
    yield "\nCommands marked *here* call no service, and have only their own options.\n"
    yield "## Commands\n"
    for name, command in alone.items():
        yield from describe_command(f"toolkit {name}", command)
    for name, command in groups.items():
        yield from describe_command(f"toolkit {name}", command)


def main() -> int:
    """Write the pages, or check them."""
    stale = []
    for render_page in (http, client, cli, errors, settings, checks, models, providers, limits):
        folder = DOCS if render_page is limits else DOCS / "reference"
        page = folder / f"{render_page.__name__}.md"
        old = page.read_text(encoding="utf-8")
        new = old.partition(MARKER)[0] + MARKER + "\n" + "\n".join(render_page()).strip() + "\n"
        if new != old:
            stale.append(page.name)
            if "--check" not in sys.argv:
                page.write_text(new, encoding="utf-8")
    if stale and "--check" in sys.argv:
        print(f"stale, run scripts/fix: {', '.join(stale)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
