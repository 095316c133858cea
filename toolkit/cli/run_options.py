"""The options of a command, made from the contract's options of a run and from dataclasses."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import wraps
from typing import Annotated, Any, get_args, get_type_hints

import typer

from toolkit.cli import completion
from toolkit.contract.run_options import RUN_OPTIONS, RunOptions, WorkOptions

_HINTS = get_type_hints(RunOptions)
_COMPLETIONS = {
    "provider": completion.providers,
    "endpoint_id": completion.make_id_completion("endpoints"),
    "compute_id": completion.make_id_completion("compute"),
}


def make_option(name: str) -> Any:
    """Make typer's option from an option of a run.

    Args:
        name: name of the option in the contract; the first words of its description are the help.
    """
    words = re.split(r"[;:] ", RUN_OPTIONS[name].replace("`", ""))[0]
    kinds = get_args(_HINTS[name])
    flag = f"--{name.replace('_', '-')}"
    return typer.Option(
        *([f"{flag}/--no-{flag[2:]}"] if bool in kinds else [flag]),
        min=0 if float in kinds else None,
        help=f"{words[0].upper()}{words[1:]}.",
        autocompletion=_COMPLETIONS.get(name),
    )


def make_parameters(kind: type[RunOptions] | type[WorkOptions]) -> list[inspect.Parameter]:
    """Make the parameters of a command that takes options of a run.

    >>> [each.name for each in make_parameters(WorkOptions)][:2]
    ['optimize_for', 'provider']
    """
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[hint, make_option(name)],
        )
        for name, hint in get_type_hints(kind).items()
    ]


def list_options(kind: type) -> dict[str, inspect.Parameter]:
    """List the options that the fields of a dataclass stand for, by their names."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        field.name: inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(kind)
    }


def make_command(
    function: Callable[..., None], shared: Mapping[str, inspect.Parameter], run: Callable[..., None]
) -> Callable[..., None]:
    """Make a command that has options in common with others.

    Args:
        function: the command; `run` supplies its first parameter.
        shared: shared options, by name.
        run: function that takes the values of shared options by name, and others as keywords.
    """
    signature = list(inspect.signature(function).parameters.values())[1:]
    # One parameter stands for all options of a run.
    grouped = {
        parameter.name: make_parameters(parameter.annotation)
        for parameter in signature
        if parameter.annotation in (RunOptions, WorkOptions)
    }

    @wraps(function)
    def command(**arguments: Any) -> None:
        values = {name: arguments.pop(name) for name in shared}
        for name, parameters in grouped.items():
            arguments[name] = {
                parameter.name: arguments.pop(parameter.name) for parameter in parameters
            }
        run(values, **arguments)

    command_options = [
        option for parameter in signature for option in grouped.get(parameter.name, [parameter])
    ]
    # Typer reads a command's options from these.
    options = sorted([*command_options, *shared.values()], key=lambda option: option.kind)
    command.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    command.__annotations__ = {option.name: option.annotation for option in options}
    return command
