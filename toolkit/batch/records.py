"""The values that a notebook of a batch records: written by its kernel, read from its outputs."""

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from toolkit.contract.errors import ErrorCode, RequestError

MIME = "application/vnd.capability-toolkit.record+json"
IN_BATCH = "TOOLKIT_BATCH"  # set in the environment of a batch's kernels
RESERVED = ("status", "error", "seconds", "path")


def record(name: str, value: object) -> None:
    """Have a value become a column of the batch's table; outside of a batch, only check it.

    The last value of a name is the one that counts.

    Args:
        name: of the column.
        value: anything that JSON has, or a number of NumPy.

    Raises:
        RequestError: if the name is the table's own, or JSON has no such value.
    """
    if not name or name in RESERVED:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"Record it by another name than `{name}`: the table has {', '.join(RESERVED)} itself.",
        )
    try:
        # As text: the wire of kernels keeps neither NaN nor large integers.
        text = json.dumps(value, default=_plain)
    except (TypeError, ValueError):
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"`{name}` cannot be recorded: give a number, text, truth value, list or dictionary.",
        ) from None
    ipython = sys.modules.get("IPython")
    if os.environ.get(IN_BATCH) and ipython is not None and ipython.get_ipython() is not None:
        from IPython.display import publish_display_data

        publish_display_data({MIME: {"name": name, "value": text}})


def recorded(notebook: Mapping[str, Any]) -> dict[str, Any]:
    """Read what an executed notebook recorded, in order."""
    found: dict[str, Any] = {}
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            kept = output.get("data", {}).get(MIME)
            if kept is not None:
                found[kept["name"]] = json.loads(kept["value"])
    return found


def _plain(value: object) -> object:
    """Convert a number of NumPy to one of Python's."""
    item = getattr(value, "item", None)
    if item is None:
        raise TypeError
    return item()
