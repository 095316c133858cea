"""An HTTP server on a real socket of this machine, for vendors that a test simulates."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class JsonHandler(BaseHTTPRequestHandler):
    """A handler of requests and responses in JSON."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer a GET."""
        self.answer_get()

    def do_POST(self) -> None:
        """Answer a POST."""
        self.answer_post()

    def answer_get(self) -> None:
        """Answer a GET, as the server of a test does."""
        raise NotImplementedError

    def answer_post(self) -> None:
        """Answer a POST, as the server of a test does."""
        raise NotImplementedError

    def read_json(self) -> Any:
        """Read the body of the request."""
        return json.loads(self.rfile.read(int(self.headers["content-length"])))

    def send_json(self, status: int, body: object) -> None:
        """Send a response in JSON."""
        self.send_content(status, json.dumps(body).encode(), "application/json")

    def send_content(self, status: int, content: bytes, media_type: str) -> None:
        """Send a response with the given content."""
        self.send_response(status)
        self.send_header("content-type", media_type)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class LoopbackServer:
    """The server, on its own thread, until it is closed; `url` ends in `/v1`."""

    def __init__(self, handler: type[JsonHandler]) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
