"""Answers that uvicorn gives by itself: lines that are no HTTP are refused in our envelope, too."""

import asyncio
import logging

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.ids import Prefix, new_id
from toolkit.server.http.errors import render_error

log = logging.getLogger(__name__)


class _Http400Protocol:
    """A protocol mixin that refuses in JSON what cannot be parsed; no app is asked."""

    transport: asyncio.Transport

    def send_400_response(self, msg: str) -> None:
        """Refuse the request, and close the connection."""
        request_id = new_id(Prefix.REQUEST)
        log.info("%s: %s", request_id, msg)
        error = RequestError(
            ErrorCode.INVALID_REQUEST,
            "The request is no proper HTTP.",
            details=[Detail("", "its lines cannot be read")],
        )
        headers = {"X-Request-Id": request_id, "Connection": "close"}
        response = render_error(error, request_id, headers=headers)
        head = b"".join(b"%s: %s\r\n" % pair for pair in response.raw_headers)
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + head + b"\r\n" + response.body)
        self.transport.close()


# uvicorn has two protocols, by what is installed; both answer by this one method.
HTTP_PROTOCOL: type[asyncio.Protocol] = type("Protocol", (_Http400Protocol, AutoHTTPProtocol), {})
