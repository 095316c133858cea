"""How an error ends a command: its exit code, and one line on stderr that says what to do."""

import json
import sys

from toolkit.cli.output import tame
from toolkit.contract.errors import RequestError, ToolkitError

EXIT_CODES = {
    0: "done",
    1: "the work failed, or the service cannot serve",
    2: "the command was not understood",
    3: "the request was refused: change it first",
    130: "interrupted; the work goes on",
}


def exit_code(error: Exception) -> int:
    """The exit code that an error ends with.

    >>> from toolkit.contract.errors import ErrorCode, ServiceError
    >>> exit_code(ServiceError(ErrorCode.UNAVAILABLE))
    1
    """
    return 3 if isinstance(error, RequestError) else 1


def report(error: Exception, *, as_json: bool) -> None:
    """Say on stderr what went wrong, in one line or as the contract's JSON."""
    if not as_json:
        print(tame(str(error)), file=sys.stderr)
        return
    from toolkit.contract.base import ErrorEnvelope, ErrorInfo

    if isinstance(error, ToolkitError):
        info = ErrorInfo.of(error).model_copy(update={"request_id": error.request_id})
    else:
        info = ErrorInfo(code="INTERNAL", message=str(error))
    print(json.dumps(ErrorEnvelope(error=info).model_dump(mode="json")), file=sys.stderr)
