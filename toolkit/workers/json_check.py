"""A check of whether bytes are JSON; for a worker process if there are many bytes."""

import gc
import json


def is_json(data: bytes) -> bool:
    """Check whether bytes are JSON.

    >>> is_json(b'{"tea": 1}'), is_json(b"tea")
    (True, False)
    """
    collects = gc.isenabled()
    gc.disable()  # it would scan all the new objects again and again
    try:
        json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError, MemoryError):
        return False
    finally:
        if collects:
            gc.enable()
    return True
