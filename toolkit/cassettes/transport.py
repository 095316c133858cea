"""The transport between the engine and the network, which records and replays."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx

from toolkit.cassettes.cassette import Cassette
from toolkit.cassettes.matching import RequestKey, get_requested_model
from toolkit.cassettes.scrubbing import PLACEHOLDER
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import UNRECORDED, ProviderError


class CassetteTransport(httpx.AsyncBaseTransport):
    """A transport that answers from a cassette, or passes requests on and records the answers.

    Args:
        cassette: the recorded exchanges, and its mode.
        inner: the transport for other requests; None in a replay, which sends nothing.
    """

    def __init__(self, cassette: Cassette, inner: httpx.AsyncBaseTransport | None) -> None:
        self._cassette = cassette
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the recorded answer to a request, or send the request and record its answer.

        Raises:
            ProviderError: `REPLAY_MISS` for an unknown request in a replay.
                `SECRET_UNRESOLVED` for a new request that has no key to be sent with.
        """
        await request.aread()
        key = self._cassette.compute_key(request)
        replay = self._cassette.replay_response(key)
        if replay is not None:
            return replay
        if self._inner is None:
            raise self._cassette.make_miss_error(key)
        if any(value.split()[-1:] == [PLACEHOLDER] for value in request.headers.values()):
            raise ProviderError(
                ErrorCode.SECRET_UNRESOLVED,
                "The cassette has no answer to this request, and the connection has no secret to"
                " send it with: set the secret, or use a cassette that has the answer.",
            )
        if request.extensions.get(UNRECORDED):
            return await self._inner.handle_async_request(request)
        place = self._cassette.reserve_position()
        response = await self._inner.handle_async_request(request)
        stream = response.stream
        if not isinstance(stream, httpx.AsyncByteStream):
            raise TypeError("an asynchronous transport returned a synchronous stream")
        # A new response, because a response whose body has been read ignores its stream.
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=_RecordingStream(
                stream, self._cassette, place, key, response, get_requested_model(request)
            ),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close the transport that this transport wraps."""
        if self._inner is not None:
            await self._inner.aclose()


@dataclass(eq=False)
class _RecordingStream(httpx.AsyncByteStream):
    """A stream that passes on an answer's body, and records it once it is complete.

    Limits on size and time therefore apply as they do without a cassette.
    """

    stream: httpx.AsyncByteStream
    cassette: Cassette
    place: int
    key: RequestKey
    response: httpx.Response
    model: str

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks: list[bytes] = []
        async for chunk in self.stream:
            chunks.append(chunk)
            yield chunk
        try:
            response = httpx.Response(
                self.response.status_code, headers=self.response.headers, content=b"".join(chunks)
            )
        except httpx.DecodingError:
            return  # the reader of the response gets the same error
        await self.cassette.record_response(self.place, self.key, response, self.model)

    async def aclose(self) -> None:
        await self.stream.aclose()
