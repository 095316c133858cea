"""Write the index of operations, from the table of them.

`python scripts/operations.py` writes `toolkit/contract/operations/index.py`; with `--check` it
fails if that is not what it would write.
"""

import sys
from pathlib import Path

from toolkit.contract.operations.table import OPERATIONS

TARGET = Path(__file__).parent.parent / "toolkit/contract/operations/index.py"
LINE_LENGTH = 100
HEAD = '''"""The operations in short, for whoever asks without pydantic.

Written by `scripts/operations.py` from the table, which is where an operation is defined.
"""

from typing import Final

from toolkit.contract.operations.entry import OperationEntry, matches_path

INDEX: Final = (
'''
TAIL = ''')


def find_entry(method: str, path: str) -> OperationEntry | None:
    """Find the operation of a request. Returns None for an unknown path or method."""
    return next(
        (entry for entry in INDEX if entry.method == method and matches_path(entry.path, path)),
        None,
    )


def list_entries(resource: str) -> list[OperationEntry]:
    """List the operations on a resource; empty for an unknown resource."""
    return [entry for entry in INDEX if entry.resource == resource]
'''


def make_index() -> str:
    """Make the text of the module."""
    lines = []
    for one in OPERATIONS:
        text = ", ".join(
            f'"{word}"' for word in (one.resource.name, one.verb, one.method, one.path)
        )
        line = f"    OperationEntry({text}, {one.replays}),\n"
        if len(line) > LINE_LENGTH + 1:
            line = f"    OperationEntry(\n        {text}, {one.replays}\n    ),\n"
        lines.append(line)
    return HEAD + "".join(lines) + TAIL


def main() -> int:
    """Write the index, or check it."""
    text = make_index()
    if "--check" not in sys.argv:
        TARGET.write_text(text, encoding="utf-8")
        return 0
    if TARGET.read_text(encoding="utf-8") == text:
        return 0
    print(f"{TARGET.name} is not what scripts/operations.py writes")
    return 1


if __name__ == "__main__":
    sys.exit(main())
