"""Write the options of a run as keyword arguments, from the contract's model.

`python scripts/run_options.py` writes `toolkit/contract/run_options.py`; with `--check` it fails if
the module is out of date.
"""

import sys
import textwrap
from pathlib import Path
from types import NoneType
from typing import Annotated, get_args, get_origin

from pydantic.fields import FieldInfo

from toolkit.contract import choices
from toolkit.contract.jobs import Options, ProviderLists

TARGET = Path(__file__).parent.parent / "toolkit/contract/run_options.py"
# These are options of a run only: a job names its pod, and a workflow has members for them.
PLACEMENT = ("endpoint_id", "compute_id")
# A caller names the members of an object of lists as options of their own.
LISTS_OF = {"provider": ProviderLists.model_fields}
HEAD = '''"""The options of a run as keyword arguments, for code that runs without pydantic.

Written by `scripts/run_options.py` from `Options`, which defines the options.
"""

from collections.abc import Sequence
from typing import Final, TypedDict

from toolkit.contract.choices import OptimizeFor, Tier, When


class WorkOptions(TypedDict, total=False):
    """The options of any work; None means that an option is omitted."""

'''
PLACED = '''

class RunOptions(WorkOptions, total=False):
    """The options of a run: the options of any work, and the place of GPU work."""

'''
ATTRIBUTES = '''

class RunOptionAttributes:
    """The options of a run as attributes; None if an option is omitted."""

'''
LISTS = '''

PLACEMENT_OPTIONS: Final = ({placement})
PROVIDER_LISTS: Final = ({provider_lists})  # members of the object that `provider` may be
RUN_OPTIONS: Final[dict[str, str]] = {{
{descriptions}
}}
"""The description of each option, by name."""
WORK_OPTIONS: Final[dict[str, str]] = {{
    name: words for name, words in RUN_OPTIONS.items() if name not in PLACEMENT_OPTIONS
}}
"""The descriptions of the options of any work."""
'''


def list_fields() -> dict[str, FieldInfo]:
    """List the options that a caller may name, with the fields that describe them."""
    fields: dict[str, FieldInfo] = {}
    for name, field in Options.model_fields.items():
        fields |= {name: field, **LISTS_OF.get(name, {})}
    return fields


def name_type(name: str, annotation: object) -> str:
    """Return the type that a caller may pass: a plain type, or one of the contract's choices."""
    if name in LISTS_OF:
        return "str"
    if any(name in lists for lists in LISTS_OF.values()):
        return "str | Sequence[str]"
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    for word, choice in vars(choices).items():
        if choice == annotation:
            return word
    if isinstance(annotation, type):
        return annotation.__name__
    kinds = (kind for kind in get_args(annotation) if kind is not NoneType)
    return " | ".join(name_type(name, kind) for kind in kinds)


def write_options() -> str:
    """Write the text of the module."""
    option_fields = list_fields()
    names = {name: name not in PLACEMENT for name in option_fields}

    def declare(of_any_work: bool) -> str:
        return "".join(
            f"    {name}: {name_type(name, option_fields[name].annotation)} | None\n"
            for name, of_any in names.items()
            if of_any == of_any_work
        )

    described = []
    for name in sorted(names, key=names.__getitem__, reverse=True):
        words = str(option_fields[name].description).replace("\n", " ")
        lines = textwrap.wrap(words, 84, drop_whitespace=False)
        if len(lines) == 1 and len(name) + len(words) < 84:
            described.append(f'    "{name}": "{words}",')
        else:
            quoted = "\n".join(f'        "{line}"' for line in lines)
            described.append(f'    "{name}": (\n{quoted}\n    ),')
    lists = LISTS.format(
        placement=", ".join(f'"{name}"' for name in PLACEMENT),
        provider_lists=", ".join(f'"{name}"' for name in ProviderLists.model_fields),
        descriptions="\n".join(described),
    )
    options = declare(True), declare(False)
    attributes = "".join(options).replace(" | None\n", " | None = None\n")
    return HEAD + options[0] + PLACED + options[1] + ATTRIBUTES + attributes + lists


def main() -> int:
    """Write or check the module; the exit code is 1 if it is out of date."""
    text = write_options()
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(text, encoding="utf-8")
        return 0
    if TARGET.read_text(encoding="utf-8") == text:
        return 0
    print(f"{TARGET.name} is out of date; run scripts/fix")
    return 1


if __name__ == "__main__":
    sys.exit(main())
