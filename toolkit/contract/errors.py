"""The enum of errors and the exceptions that carry its members.

    Exception
    └── ToolkitError            carries an ErrorCode, one sentence, and where it happened
        ├── RequestError        this request cannot be served: 4xx, change it and send it again
        ├── ServiceError        the service cannot serve it now: 429 and 5xx
        │   └── ServiceTimeoutError     a client's time was up first; a `TimeoutError`, too
        └── WorkError           accepted work ended badly: on a run, job, node, workflow or task

(decisions, "Status codes"; nothing else crosses a floor.)
"""

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Self

from toolkit.contract.short_tracebacks import ShortTraceback
from toolkit.contract.suggestions import truncate_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


MAX_MESSAGE = 1_000  # characters
MAX_SHOWN_FAULTS = 8  # places of a request that a notebook shows below an error
# The statuses of a service that is away, or of a proxy whose service is.
AWAY_STATUSES = frozenset({502, 503, 504})


@dataclass(frozen=True, slots=True)
class Detail:
    """A path in a request, such as `nodes.2.depends_on.0`, and the fault there; both truncated."""

    path: str
    message: str

    def __post_init__(self) -> None:
        """Truncate both, because they may contain text of the caller, such as names of members."""
        object.__setattr__(self, "path", truncate_text(self.path))
        object.__setattr__(self, "message", truncate_text(self.message, MAX_MESSAGE))


class ErrorCode(Enum):
    """Every error code, each with its HTTP status, whether a retry may help, and the next step."""

    # code = (HTTP status or None, retryable, a person's next step)
    INVALID_REQUEST = 400, False, "Correct the fields named in details and send it again."
    INVALID_WORKFLOW = 400, False, "Correct the nodes named in details and submit it again."
    CREDENTIALS_MISSING = 400, False, "Register a provider connection for this capability."
    PROVIDER_NOT_ALLOWED = 400, False, "Pin a provider that this capability allows, or none."
    TARGET_UNSUPPORTED = 400, False, "Set target to `capability`, or to `agent` to run an agent."
    CAPABILITY_UNAVAILABLE = 400, False, "Choose a capability whose status is `available`."
    FUNCTION_UNAVAILABLE = 400, False, "Register the function in the process that calls it."
    UNAUTHENTICATED = 401, False, "Send a valid key as `Authorization: Bearer sk_live_…`."
    BUDGET_EXCEEDED = (
        402,
        False,
        "Raise the limit, ask for less, or choose a model with a known price.",
    )
    FORBIDDEN = 403, False, "Use a key with the scope that this request needs."
    NOT_FOUND = 404, False, "Check the id, name or version."
    METHOD_NOT_ALLOWED = 405, False, "Use a method this path offers."
    CONFLICT = 409, False, "Resolve the conflict that the message names, and try again."
    PAYLOAD_TOO_LARGE = 413, False, "Send less: a smaller body, or an artifact by its id."
    UNSUPPORTED_MEDIA_TYPE = 415, False, "Send the content type this path takes."
    IDEMPOTENCY_CONFLICT = 422, False, "Use a new Idempotency-Key for a different body."
    RATE_LIMITED = 429, True, "Wait as long as Retry-After says."
    INTERNAL = 500, True, "Report it with the request id."
    UNAVAILABLE = 503, True, "Try again as Retry-After says."

    PROVIDER_AUTH_FAILED = None, False, "Check the secret that the connection points to."
    PROVIDER_RATE_LIMITED = None, True, "Wait, or connect another provider."
    PROVIDER_UNAVAILABLE = None, True, "Try again later, or connect another provider."
    PROVIDER_TIMEOUT = None, True, "Try again, ask for less, or raise the timeout."
    PROVIDER_REJECTED = None, False, "Change the input, which was refused."
    PROVIDER_BAD_RESPONSE = None, True, "Try again, or connect another provider."
    SECRET_UNRESOLVED = None, False, "Set the secret that the connection points to."
    INVALID_OUTPUT = None, True, "Try again: the result did not match its schema."
    FUNCTION_FAILED = None, True, "Read where it failed, correct the function, and run it again."
    SEAL_BROKEN = None, False, "Use a new seal, run it without `sealed`, or restore the model."
    UPSTREAM_FAILED = None, False, "Look at the upstream node that failed."
    CANCELLED = None, False, "Submit it again if you still need the result."
    REVIEW_FAILED = None, False, "Read review.issues and reword the objective."
    RETRIES_EXHAUSTED = None, False, "Read the attempts, then change the input or the provider."
    REPLAY_MISS = None, False, 'Record it: open the cassette with mode="auto" or mode="record".'

    def __init__(self, http_status: int | None, retryable: bool, hint: str) -> None:
        self.http_status = http_status
        self.retryable = retryable
        self.hint = hint

    def __new__(cls, *_: object) -> Self:
        """Give each member its own value: two codes may share status and hint."""
        member = object.__new__(cls)
        member._value_ = len(cls.__members__)
        return member

    @property
    def code(self) -> str:
        """The string on the wire."""
        return self.name


class ToolkitError(ShortTraceback, Exception):
    """Any failure, as one code and one sentence.

    Attributes:
        code: the member of `ErrorCode`.
        message: one sentence that states the failure and the next step; never a secret.
        details: faulty places of the request, if the request is at fault.
        request_id: `req_` id of the answer that carried the error, if there was an answer.
        retry_after: seconds to wait before trying again, if known.
        vendor_request_id: vendor's own id of the failed call, if the vendor gave an id.
        is_away: whether the service could not be reached, or answered that it cannot serve now.
        rate_limit: limit that rejected the request, as requests in a number of seconds; None if the
            cause was no rate limit of requests.
    """

    is_away = False
    rate_limit: tuple[int, int] | None = None

    def __init__(
        self,
        code: ErrorCode,
        message: str = "",
        *,
        details: "Sequence[Detail]" = (),
        request_id: str | None = None,
        retry_after: float | None = None,
        vendor_request_id: str | None = None,
    ) -> None:
        message = truncate_text(message or code.hint, MAX_MESSAGE)
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = tuple(details)
        self.request_id = request_id
        self.retry_after = retry_after
        self.vendor_request_id = vendor_request_id

    def __str__(self) -> str:
        line, places = self._make_headline(), "; ".join(self._list_faults())
        return f"{line} ({places})" if places else line

    def _make_headline(self) -> str:
        line = f"{self.code.name}: {self.message}"
        hint = self._format_hint()
        return line if hint in line else f"{line} {hint}"

    def _list_faults(self) -> list[str]:
        """List the faulty places that the message does not name already."""
        return [
            f"{detail.path}: {detail.message}" if detail.path else detail.message
            for detail in self.details
            if detail.message not in self.message
        ]

    def _list_lines(self) -> list[str]:
        faults = self._list_faults()
        excess = len(faults) - MAX_SHOWN_FAULTS
        ending = [f"  and {excess} more, in .details"] if excess > 0 else []
        return [f"  {fault}" for fault in faults[:MAX_SHOWN_FAULTS]] + ending

    def _format_hint(self) -> str:
        """Return the next step; "" if it would point to details or a wait that are not there."""
        if "in details" in self.code.hint and not self.details:
            return ""
        if "Retry-After" not in self.code.hint:
            return self.code.hint
        return "" if self.retry_after is None else f"Try again in {self.retry_after:g} s."


class RequestError(ToolkitError):
    """The request cannot be served unless it is changed."""


class ServiceError(ToolkitError):
    """The service cannot serve this request now."""


class ServiceTimeoutError(ServiceError, TimeoutError):
    """The service did not answer, or work did not end, within a client's time limit.

    Work that failed because its vendor was too slow is a `WorkError`: waiting again does not help.
    """


class WorkError(ToolkitError):
    """Work that was accepted ended badly.

    Attributes:
        work: `Run`, `Job`, `WorkflowRun` or `Task` that a client waited for. None elsewhere, and in
            another process that received the error.
        next_call: client call that continues the work, or reads it if nothing can continue it; ""
            if no client waited for it.
    """

    work: "Any" = None
    next_call = ""

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *self._list_next()])

    def _list_lines(self) -> list[str]:
        return [*super()._list_lines(), *self._list_next()]

    def _list_next(self) -> list[str]:
        return [f"  {self.next_call}"] if self.next_call else []

    def _list_members(self) -> "dict[str, Any]":
        return {name: value for name, value in super()._list_members().items() if name != "work"}


def get_error_class(code: ErrorCode) -> type[ToolkitError]:
    """Return the exception class that carries `code`.

    >>> get_error_class(ErrorCode.NOT_FOUND).__name__
    'RequestError'
    """
    if code.http_status is None:
        return WorkError
    return ServiceError if code.http_status == 429 or code.http_status >= 500 else RequestError


def build_not_found(what: str, name: str) -> RequestError:
    """Build the error for an unknown id.

    An id of another account gets the same error, so that nobody can find out that it exists.
    """
    return RequestError(
        ErrorCode.NOT_FOUND, f"There is no {what} `{truncate_text(name, 100)}` here."
    )
