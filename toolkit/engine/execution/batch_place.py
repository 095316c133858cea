"""The place of a job in a batch of its vendor: its request goes out and its answer comes apart."""

from collections import deque
from collections.abc import Sequence

import httpx

from toolkit.contract.connections import Connection
from toolkit.contract.errors import ErrorCode
from toolkit.contract.short_tracebacks import PicklableError
from toolkit.plugins import BatchResult, ProviderError


class RequestParked(PicklableError, Exception):  # noqa: N818 - not an error: the request waits for a batch
    """Raised when a job needs an answer that only a batch can give; the job goes on after it.

    Attributes:
        request: the request to put into a batch; None if the job is to make it anew.
    """

    def __init__(self, request: httpx.Request | None = None) -> None:
        super().__init__("the request waits for a batch")
        self.request = request


class BatchPlace:
    """The place of a job in a batch.

    A job is executed twice. The first time ends at its request, which goes into the batch. The
    second time the result of the batch answers the same request.

    Args:
        batch_id: our id of the batch; "" before it is known.
        outcome: the result of the job's request, or the failure of the batch; None the first time.
        connection: the connection whose vendor has the batch; None the first time.
        refusals: the answers of earlier batches that refused other forms of the request.
    """

    def __init__(
        self,
        batch_id: str = "",
        outcome: BatchResult | ProviderError | None = None,
        connection: Connection | None = None,
        refusals: Sequence[httpx.Response] = (),
    ) -> None:
        self.batch_id = batch_id
        self.connection = connection
        self._outcome = outcome
        self._refusals = deque(refusals)

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Return the answer of the job's request.

        Raises:
            RequestParked: the answer is not there. That is so, too, for a further form of a request
                that the vendor refused.
            ProviderError: the failure of the batch; `PROVIDER_TIMEOUT` if the request expired.
        """
        # A refusal that another row has shown to the vendor's flow is not met again.
        while self._refusals:
            refusal = self._refusals.popleft()
            if refusal.request.content == request.content:
                return refusal
        outcome, self._outcome = self._outcome, None
        if outcome is None:
            raise RequestParked(request)
        if isinstance(outcome, ProviderError):
            raise outcome
        if outcome.response is None:
            raise ProviderError(
                ErrorCode.PROVIDER_TIMEOUT, "The vendor did not reach the request in its batch."
            )
        outcome.response.request = request
        return outcome.response
