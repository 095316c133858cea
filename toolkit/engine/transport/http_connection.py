"""One HTTP/1.1 connection to a vendor: requests go out and answers come in, one after the other.

The parser is httptools', which servers use too; what is here is when bytes are written and read.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from typing import cast

import httptools
import httpx

# Of a status line with its headers: whoever sends more, sends no answer.
MAX_HEAD_BYTES = 64 * 1024
# What is received and not read yet; past this, no more is taken from the socket.
MAX_UNREAD_BYTES = 256 * 1024
RawHeaders = list[tuple[bytes, bytes]]
RequestBody = bytes | AsyncIterable[bytes]


class RequestNotSentError(Exception):
    """Raised when a connection was closed before the first byte of a request was written."""


class HttpReply:
    """An answer as it comes in.

    Args:
        connection: that it comes in by.
        has_no_body: whether its head is all of it, as the answer to a `HEAD` is.
    """

    def __init__(self, connection: "HttpConnection", *, has_no_body: bool) -> None:
        self.status = 0
        self.headers: RawHeaders = []
        self.has_no_body = has_no_body
        self.has_head = False
        self.is_complete = False
        # Whether the end of the connection is the end of the body.
        self.ends_with_connection = False
        self._connection = connection
        self._chunks: list[bytes] = []
        self._unread_bytes = 0
        self._error: httpx.TransportError | None = None
        self._arrival: asyncio.Future[None] | None = None

    @property
    def is_over(self) -> bool:
        """True if nothing more comes."""
        return self.is_complete or self._error is not None

    def add_chunk(self, chunk: bytes) -> None:
        """Take in a part of the body."""
        self._chunks.append(chunk)
        self._unread_bytes += len(chunk)
        if self._unread_bytes > MAX_UNREAD_BYTES:
            self._connection.pause_reading()
        self.wake_reader()

    def complete(self) -> None:
        """Note that all of it is there."""
        self.is_complete = True
        self.wake_reader()

    def fail(self, error: httpx.TransportError) -> None:
        """Note that the rest of it will not come."""
        if not self.is_over:
            self._error = error
            self.wake_reader()

    def wake_reader(self) -> None:
        """Have whoever waits for more look again."""
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    async def wait_for_head(self) -> None:
        """Wait for the status and the headers.

        Raises:
            httpx.TransportError: they did not come, or are no HTTP.
        """
        while not self.has_head:
            await self._wait_for_more()

    async def iter_chunks(self) -> AsyncIterator[bytes]:
        """Iterate over the body as it comes, still encoded.

        Raises:
            httpx.TransportError: the rest of it did not come.
        """
        while True:
            chunks, self._chunks, self._unread_bytes = self._chunks, [], 0
            self._connection.resume_reading()
            for chunk in chunks:
                yield chunk
            if self.is_complete and not self._chunks:
                return
            if not self._chunks:
                await self._wait_for_more()

    async def _wait_for_more(self) -> None:
        if self._error is not None:
            raise self._error
        self._arrival = asyncio.get_running_loop().create_future()
        try:
            await self._arrival
        finally:
            self._arrival = None


class HttpConnection(asyncio.Protocol):
    """A connection that sends a request and receives its answer, again while both sides keep it.

    Attributes:
        is_open: whether it can be written to.
        is_reusable: whether it is in a state to send another request on.
        exchanges: how many requests were sent on it.
        tls: the object that wraps it; none where it is plain.
        closed: done when it is closed.
    """

    def __init__(self) -> None:
        self.is_open = True
        self.is_reusable = True
        self.exchanges = 0
        self.tls: object = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport
        self._reply: HttpReply | None = None
        self._head_bytes = 0
        self._is_reading_paused = False
        self._writable: asyncio.Future[None] | None = None

    async def send_request(self, head: bytes, body: RequestBody, *, is_head: bool) -> HttpReply:
        """Send a request and wait for the head of its answer.

        Args:
            head: its first line and headers.
            body: all of it, or what makes it as it is sent, in the form that the headers tell.
            is_head: whether it is a `HEAD`, the answer to which has no body.

        Raises:
            RequestNotSentError: nothing was written, as the other side has closed meanwhile.
            httpx.TransportError: it was written, and no answer came.
        """
        if not self.is_open or self._transport.is_closing():
            raise RequestNotSentError
        self.exchanges += 1
        self._head_bytes = 0
        reply = self._reply = HttpReply(self, has_no_body=is_head)
        if isinstance(body, bytes):
            self._transport.write(head + body if body else head)
        else:
            self._transport.write(head)
            await self._send_stream(body, reply)
        await reply.wait_for_head()
        return reply

    async def _send_stream(self, body: AsyncIterable[bytes], reply: HttpReply) -> None:
        """Send a body as it is made, until the other side has heard enough."""
        async for chunk in body:
            if not self.is_open or reply.has_head:
                self.is_reusable = False
                return
            self._transport.write(chunk)
            if self._writable is not None:
                await self._writable

    def finish_reply(self, reply: HttpReply) -> None:
        """Let go of an answer, read or not; without its end, or another's begin, it closes."""
        self._reply = None
        if not reply.is_complete:
            self.abort()
        elif not self.is_reusable:
            self.close()
        else:
            self.resume_reading()

    def close(self) -> None:
        """Close the connection, with TLS's farewell."""
        self.is_reusable = False
        if self.is_open:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self.is_reusable = False
        if self.is_open:
            self._transport.abort()

    def pause_reading(self) -> None:
        """Take no more from the socket until what is there has been read."""
        if not self._is_reading_paused and self.is_open and not self._transport.is_closing():
            self._is_reading_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Take more from the socket again."""
        if self._is_reading_paused:
            self._is_reading_paused = False
            if self.is_open and not self._transport.is_closing():
                self._transport.resume_reading()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport that is written to."""
        # Not asserted: uvloop's transports are no subclass of asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self.tls = transport.get_extra_info("ssl_object")

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        reply = self._reply
        if reply is None:  # nobody asked: it is not known what this would answer
            self.abort()
            return
        if not reply.has_head:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail("The answer is no HTTP/1.1.")
            return
        if not reply.has_head and self._head_bytes > MAX_HEAD_BYTES:
            self._fail("The headers of the answer are too long.")

    def _fail(self, message: str) -> None:
        if self._reply is not None:
            self._reply.fail(httpx.RemoteProtocolError(message))
        self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the answer that was coming in."""
        self.is_open = False
        reply = self._reply
        if reply is not None:
            if exc is None and reply.has_head and reply.ends_with_connection:
                reply.complete()
            else:
                reply.fail(httpx.ReadError("The connection was closed before the answer's end."))
        self.resume_writing()
        if not self.closed.done():
            self.closed.set_result(None)

    def pause_writing(self) -> None:
        """Have a body that is made as it is sent wait."""
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        """Have it go on."""
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)

    # What the parser calls.

    def on_message_begin(self) -> None:
        """See that an answer does not begin where one has ended."""
        if self._reply is not None and self._reply.is_complete:
            self.is_reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; one behind the body says nothing that is read."""
        reply = self._reply
        if reply is not None and not reply.has_head:
            reply.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Note the status, unless it only announces the answer."""
        reply = self._reply
        status = self._parser.get_status_code()
        if reply is None or reply.is_complete:
            return
        if status < 200:
            reply.headers.clear()
            return
        reply.status, reply.has_head = status, True
        names = {name.lower(): value for name, value in reply.headers}
        chunked = names.get(b"transfer-encoding", b"").lower().strip().endswith(b"chunked")
        reply.ends_with_connection = b"content-length" not in names and not chunked
        if not self._parser.should_keep_alive():
            self.is_reusable = False
        if reply.has_no_body:
            self.is_reusable = False  # the parser waits for what does not come
            reply.complete()
        reply.wake_reader()
        self.resume_writing()  # an answer that comes early has heard enough

    def on_body(self, data: bytes) -> None:
        """Hand a part of the body on."""
        if self._reply is not None and not self._reply.is_complete:
            self._reply.add_chunk(data)

    def on_message_complete(self) -> None:
        """End the answer, unless it was only announced."""
        if self._reply is not None and self._reply.has_head:
            self._reply.complete()
