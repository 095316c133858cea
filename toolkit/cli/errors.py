"""Errors of commands: the exit code, and a line on stderr with the error and the next step."""

import json
import sys

from toolkit.cli.output import escape_controls
from toolkit.contract.errors import ErrorCode, RequestError, ServiceError, ToolkitError

REFUSED = 3
EXIT_CODES = {
    0: "done",
    1: "the work failed, or a check found a serious fault",
    2: "the command line is invalid",
    REFUSED: "the request was refused: change it first",
    4: "the service is unavailable; accepted work continues",
    130: "interrupted; accepted work continues, and results are kept",
}


def find_exit_code(error: Exception) -> int:
    """Return the exit code for an error.

    >>> from toolkit.contract.errors import ErrorCode, ServiceError
    >>> find_exit_code(ServiceError(ErrorCode.UNAVAILABLE))
    4
    """
    if isinstance(error, RequestError):
        return REFUSED
    return 4 if isinstance(error, ServiceError) else 1


def report_error(error: Exception, *, as_json: bool) -> None:
    """Print an error on stderr, in one line or as the contract's JSON."""
    if not as_json:
        print(escape_controls(str(error)), file=sys.stderr)
        if isinstance(error, RequestError) and error.code is ErrorCode.CREDENTIALS_MISSING:
            print("Next: toolkit connections discover", file=sys.stderr)
        return
    from toolkit.contract.base import ErrorEnvelope, ErrorInfo

    if isinstance(error, ToolkitError):
        info = ErrorInfo.of(error).model_copy(update={"request_id": error.request_id})
    else:
        info = ErrorInfo(code="INTERNAL", message=str(error))
    print(json.dumps(ErrorEnvelope(error=info).model_dump(mode="json")), file=sys.stderr)
