"""Write a call for each built-in capability, with the fields of its input as its arguments.

`python scripts/capability_calls.py` writes `toolkit/client/_capability_calls.py`; with `--check` it
fails if the module is out of date.
"""

import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.capabilities import load_capabilities
from toolkit.plugins import Capability

TARGET = Path(__file__).parent.parent / "toolkit/client/_capability_calls.py"
PLAIN_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "object": "Mapping[str, object]",
}
HEAD = '''"""Calls of the built-in capabilities, each with the fields of its input as arguments.

Written by `scripts/capability_calls.py` from the capabilities' schemas.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from toolkit.client._options import start_capability
from toolkit.client._tools import ToolArgument
from toolkit.contract.run_options import RunOptions
from toolkit.contract.short_tracebacks import UnknownAttributeError

R = TypeVar("R")  # a run; in the async client, a coroutine that returns a run


class CapabilityCalls(ABC, Generic[R]):
    """A method for each built-in capability; the decorator of the method starts the run.

    The fields of the input are arguments; `options` holds the options of the run, and `version` the
    version of the capability, which is the newest by default.
    """

    _known_ids: dict[str, None]

    @abstractmethod
    def _start(
        self,
        name: str,
        fields: Mapping[str, object],
        version: str | None,
        options: RunOptions | None,
    ) -> R:
        """Start a run of a capability with these inputs; both forms of the client define how."""

    def _start_named(
        self,
        name: str,
        *,
        version: str | None = None,
        options: RunOptions | None = None,
        **fields: object,
    ) -> R:
        """Start a run of a capability that is not built in."""
        return self._start(name, fields, version, options)

    if not TYPE_CHECKING:  # calls of built-in capabilities are typed methods

        def __getattr__(self, name: str) -> object:
            if name.startswith("_"):
                raise AttributeError(name)
            for id in self._known_ids:
                if id.replace(".", "_") == name:
                    return partial(self._start_named, id)
            raise UnknownAttributeError(self, name)

    def __dir__(self) -> list[str]:
        called = (id.replace(".", "_") for id in self._known_ids)
        return sorted({*super().__dir__(), *(name for name in called if name.isidentifier())})
'''
METHOD = '''
    @{decorated}
    def {method}(
        self,
        *,
{parameters}
        version: str | None = None,
        options: RunOptions | None = None,
    ) -> R:
        """{summary}

        Args:
{arguments}
            version: version of the capability. Default: the newest.
            options: options of a run, such as `{{"provider": "openai"}}`.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST` and others.
        """
        raise NotImplementedError
'''


def name_type(schema: Mapping[str, Any]) -> str:
    """Return the type of a field, as a caller passes it."""
    if schema.get("x-functions"):
        return "Sequence[ToolArgument]"
    if "anyOf" in schema:
        return " | ".join(name_type(option) for option in schema["anyOf"])
    if "$ref" in schema:  # models of our own are written as mappings
        return PLAIN_TYPES["object"]
    if "enum" in schema:
        return f"Literal[{', '.join(map(repr, schema['enum']))}]"
    if schema["type"] == "null":
        return "None"
    if schema["type"] == "array":
        return f"Sequence[{name_type(schema['items'])}]"
    return PLAIN_TYPES[schema["type"]]


def write_call(capability: Capability) -> str:
    """Write the call of one capability."""
    schema = capability.input_model.model_json_schema()
    fields, required = schema["properties"], schema.get("required", [])
    parameters, arguments = [], []
    for name, field in fields.items():
        default = field.get("default", [] if field.get("type") == "array" else None)
        suffix = "" if name in required else f" = {tuple(default) if default == [] else default!r}"
        parameters.append(f"        {name}: {name_type(field)}{suffix},")
        words = f"{name}: {field.get('description', name)}."
        arguments.append(
            textwrap.fill(words, 100, initial_indent=" " * 12, subsequent_indent=" " * 16)
        )
    return METHOD.format(
        method=capability.id.replace(".", "_"),
        parameters="\n".join(parameters),
        summary=capability.description,
        arguments="\n".join(arguments),
        decorated=_write_decorator(capability),
    )


def _write_decorator(capability: Capability) -> str:
    ways = capability.input_model.model_json_schema().get("oneOf", ())
    names = tuple(name for way in ways for name in way["required"])
    arguments = ", ".join([f'"{capability.id}"', *([f"one_of={names!r}"] if names else [])])
    return f"start_capability({arguments})"


def write_calls(capabilities: Sequence[Capability]) -> str:
    """Write the calls of capabilities; another name of a capability shares its method."""
    methods: dict[object, str] = {}
    calls = []
    for capability in capabilities:
        name = capability.id.replace(".", "_")
        original = methods.setdefault(capability.input_model, name)
        alias = f"\n    {name} = {_write_decorator(capability)}({original})\n"
        calls.append(write_call(capability) if original == name else alias)
    return "".join(calls)


def write_module() -> str:
    """Write the formatted module."""
    built_in = [c for c in load_capabilities() if c.input_model.__module__.startswith("toolkit.")]
    text = HEAD + write_calls(built_in)
    process = subprocess.run(  # noqa: S603 - our own formatter on our own text
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    return process.stdout


def main() -> int:
    """Write or check the module; the exit code is 1 if it is out of date."""
    text = write_module()
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(text, encoding="utf-8")
        return 0
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text:
        return 0
    print(f"{TARGET.name} is out of date; run scripts/fix")
    return 1


if __name__ == "__main__":
    sys.exit(main())
