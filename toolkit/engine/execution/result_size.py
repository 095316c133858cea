"""The disk space that the result of a call may take, which is held before the call begins."""

from typing import Any, Final

from toolkit.engine.services.artifacts import MAX_INLINE_BYTES
from toolkit.plugins import Operation, TextRequest
from toolkit.store import ROWS_BYTES, ResultSize

# A text is in the document of its job, in that of its task or agent, and in its artifact.
TEXT_COPIES: Final = 3


def estimate_result_size(operation: Operation[Any]) -> ResultSize:
    """Estimate the space for the result of an operation; a longer result waits for space."""
    result_bytes = operation.result_bytes()
    is_text = isinstance(operation, TextRequest)
    rows_bytes = ROWS_BYTES + (TEXT_COPIES * result_bytes if is_text else 0)
    return ResultSize(rows_bytes, result_bytes if result_bytes > MAX_INLINE_BYTES else 0)
