"""A check of whether bytes are JSON; for a worker process if there are many bytes."""

import json

from toolkit.contract.collector_pause import pause_collector


def is_json(data: bytes) -> bool:
    """Check whether bytes are JSON.

    >>> is_json(b'{"tea": 1}'), is_json(b"tea")
    (True, False)
    """
    try:
        with pause_collector():
            json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError, MemoryError):
        return False
    return True
