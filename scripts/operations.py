"""Write the index of operations from their table.

`python scripts/operations.py` writes `toolkit/contract/operations/index.py`; with `--check` it
fails if the module is out of date.
"""

import sys
from pathlib import Path

from toolkit.contract.operations.table import OPERATIONS

TARGET = Path(__file__).parent.parent / "toolkit/contract/operations/index.py"
LINE_LENGTH = 100
HEAD = '''"""A short index of the operations, for code that runs without pydantic.

Written by `scripts/operations.py` from the table, which defines the operations.
"""

from typing import Final

from toolkit.contract.operations.entry import OperationEntry, matches_path

INDEX: Final = (
'''
TAIL = ''')


def find_entry(method: str, path: str) -> OperationEntry | None:
    """Find the operation of a request; returns None for an unknown path or method."""
    matches = (e for e in INDEX if e.method == method and matches_path(e.path, path))
    return next(matches, None)


def list_entries(resource: str) -> list[OperationEntry]:
    """List the operations on a resource; the list is empty for an unknown resource."""
    return [entry for entry in INDEX if entry.resource == resource]
'''


def make_index() -> str:
    """Make the text of the module."""
    lines = []
    for operation in OPERATIONS:
        text = ", ".join(
            f'"{word}"'
            for word in (operation.resource.name, operation.verb, operation.method, operation.path)
        )
        line = f"    OperationEntry({text}, {operation.replays}),\n"
        if len(line) > LINE_LENGTH + 1:
            line = f"    OperationEntry(\n        {text}, {operation.replays}\n    ),\n"
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
    print(f"{TARGET.name} is out of date; run scripts/fix")
    return 1


if __name__ == "__main__":
    sys.exit(main())
