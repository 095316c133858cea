"""The options of a run on the command line, made from the contract's."""

import inspect
import re
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
    """Make typer's option of one of a run's.

    Args:
        name: its name in the contract; its first words are the help.
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
