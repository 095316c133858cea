"""The values that a notebook of a batch records: written by its kernel, read from its outputs."""

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from toolkit.contract.errors import ErrorCode, RequestError

RECORD_MIME = "application/vnd.capability-toolkit.record+json"
IN_BATCH_VARIABLE = "TOOLKIT_BATCH"  # set in the environment of a batch's kernels
RESERVED_NAMES = ("status", "error", "seconds", "path")


def record(name: str, value: object) -> None:
    """Record a value as a column of the batch's table; outside of a batch, only validate it.

    If a name is recorded more than once, its last value counts.

    Args:
        name: name of the column.
        value: any JSON value, or a number of NumPy.

    Raises:
        RequestError: if the name is a column of the table itself, or the value is not JSON.
    """
    if not name or name in RESERVED_NAMES:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"`{name}` cannot be the name of a recorded value: it must not be empty or one of"
            f" {', '.join(RESERVED_NAMES)}.",
        )
    try:
        # As text, because messages of kernels keep neither NaN nor large integers.
        text = json.dumps(value, default=_to_plain_number)
    except (TypeError, ValueError):
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"`{name}` cannot be recorded: give a number, text, Boolean, list or dictionary.",
        ) from None
    ipython = sys.modules.get("IPython")
    if (
        os.environ.get(IN_BATCH_VARIABLE)
        and ipython is not None
        and ipython.get_ipython() is not None
    ):
        from IPython.display import publish_display_data

        publish_display_data({RECORD_MIME: {"name": name, "value": text}})


def read_records(notebook: Mapping[str, Any]) -> dict[str, Any]:
    """Read the values that an executed notebook recorded, in order."""
    values: dict[str, Any] = {}
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            entry = output.get("data", {}).get(RECORD_MIME)
            if entry is not None:
                values[entry["name"]] = json.loads(entry["value"])
    return values


def _to_plain_number(value: object) -> object:
    """Convert a number of NumPy to a number of Python; raise TypeError for other values."""
    item = getattr(value, "item", None)
    if item is None:
        raise TypeError
    return item()
