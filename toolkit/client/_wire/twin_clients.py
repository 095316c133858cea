"""HTTP clients of other packages with httpx's interface, such as httpx2, as transports of httpx."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import httpx

C = TypeVar("C", httpx.Client, httpx.AsyncClient)


class TwinRequests(Protocol):
    """The common part of both forms of another package's client."""

    @property
    def timeout(self) -> Any:
        """The timeout of the client's requests."""

    def build_request(self, *args: Any, **kwargs: Any) -> Any:
        """Build a request, with the headers and cookies of the client."""


class TwinClient(TwinRequests, Protocol):
    """A client of another package that has the methods of `httpx.Client`."""

    def send(self, *args: Any, **kwargs: Any) -> Any:
        """Send a request and return its answer."""

    def close(self) -> None:
        """Close the client's connections."""


class AsyncTwinClient(TwinRequests, Protocol):
    """A client of another package that has the methods of `httpx.AsyncClient`."""

    def send(self, *args: Any, **kwargs: Any) -> Awaitable[Any]:
        """Send a request and return its answer."""

    def aclose(self) -> Awaitable[None]:
        """Close the client's connections."""


def adopt_client(http_client: Any, kind: type[C]) -> C:
    """Return a client of httpx that sends requests by the client of a caller.

    Args:
        http_client: a client of httpx, or of another package with the same methods.
        kind: `httpx.Client` or `httpx.AsyncClient`.

    Raises:
        TypeError: the client has neither type.
    """
    if isinstance(http_client, kind):
        return http_client
    if not _is_twin(http_client, is_async=issubclass(kind, httpx.AsyncClient)):
        raise TypeError(f"http_client is an httpx.{kind.__name__}, not {http_client!r}")
    original = http_client.timeout
    timeout = httpx.Timeout(
        connect=original.connect, read=original.read, write=original.write, pool=original.pool
    )
    client = kind(transport=_TwinTransport(http_client), timeout=timeout)
    # The other client has its own default headers; this client decodes the content codings.
    for name in set(client.headers) - {"accept-encoding"}:
        del client.headers[name]
    return client


def _is_twin(http_client: Any, *, is_async: bool) -> bool:
    """Check whether an object has the methods of httpx's client, or of its async client."""
    names = ("timeout", "build_request", "send", "aclose" if is_async else "close")
    if isinstance(http_client, type) or not all(hasattr(http_client, name) for name in names):
        return False
    return inspect.iscoroutinefunction(http_client.send) is is_async


def _copy_request(http_client: Any, request: httpx.Request, content: object) -> Any:
    """Make the same request for the other client, which adds its own headers and cookies."""
    return http_client.build_request(
        request.method,
        str(request.url),
        headers=request.headers.multi_items(),
        content=content,
        extensions={"timeout": request.extensions["timeout"]},
    )


def _find_content(request: httpx.Request) -> bytes | None:
    """Return a request's body if it is in memory, so that it can be sent again; else None."""
    try:
        return request.content
    except httpx.RequestNotRead:
        return None


def _copy_response(response: Any) -> httpx.Response:
    """Convert the answer to a response of httpx."""
    headers = list(response.headers.raw)
    if not response.is_stream_consumed:
        return httpx.Response(response.status_code, headers=headers, stream=_Stream(response))
    # A transport that caches or mocks may have read and decoded it.
    encoded = (b"content-encoding", b"content-length", b"transfer-encoding")
    headers = [(name, value) for name, value in headers if name.lower() not in encoded]
    return httpx.Response(response.status_code, headers=headers, content=response.content)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Translate errors of the other package to the errors of httpx with the same names.

    Raises:
        httpx.RequestError: the other package raised an error of this name.
    """
    try:
        yield
    except Exception as error:
        for kind in type(error).__mro__:
            same = getattr(httpx, kind.__name__, None)
            if isinstance(same, type) and issubclass(same, httpx.RequestError):
                raise same(str(error)) from error
        raise


class _Stream(httpx.SyncByteStream, httpx.AsyncByteStream):
    """The body of an answer, as it was sent."""

    def __init__(self, response: Any) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        with _translate_errors():
            yield from self._response.iter_raw()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _translate_errors():
            async for piece in self._response.aiter_raw():
                yield piece

    def close(self) -> None:
        """Close the other client's answer."""
        self._response.close()

    async def aclose(self) -> None:
        """Close the other client's answer."""
        await self._response.aclose()


class _TwinTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """A transport that sends requests by a client of another package, of either form."""

    def __init__(self, http_client: Any) -> None:
        self._http_client = http_client

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request by the other client, and translate the answer and the errors."""
        content: object = _find_content(request)
        if content is None:
            content = iter(request.stream)  # type: ignore[arg-type]
        with _translate_errors():
            sent = _copy_request(self._http_client, request, content)
            return _copy_response(self._http_client.send(sent, stream=True))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request by the other client, and translate the answer and the errors."""
        content: object = _find_content(request)
        if content is None:
            content = aiter(request.stream)  # type: ignore[arg-type]
        with _translate_errors():
            sent = _copy_request(self._http_client, request, content)
            return _copy_response(await self._http_client.send(sent, stream=True))

    def close(self) -> None:
        """Close the other client."""
        self._http_client.close()

    async def aclose(self) -> None:
        """Close the other client."""
        await self._http_client.aclose()
