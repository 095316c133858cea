"""A model server of one's own: answers as llama-cpp-python gave them, by the rules it showed."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FACTS = json.loads(
    (Path(__file__).parents[1] / "vendors" / "facts" / "llama_cpp_python.json").read_text("utf-8")
)


def get_recorded_answer(body: dict[str, Any]) -> dict[str, Any]:
    """Return the server's recorded answer to such a body, with `max_tokens` obeyed alone."""
    seen: dict[str, dict[str, Any]] = FACTS["exchanges"]
    wanted = body.get("response_format") or {}
    if isinstance(body.get("temperature"), str):
        return seen["bad_temperature"]
    if wanted.get("type") == "json_schema":
        return seen["json_schema"]
    if wanted.get("type") == "json_object":
        return seen["json_object_with_schema" if "schema" in wanted else "json_object"]
    return seen["text" if "max_tokens" in body else "newer_cap_alone"]


class ModelServer:
    """The server on loopback; `asked` are the bodies that it was sent, in their order."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer(200, FACTS["models"])

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                asked.append(body)
                said = get_recorded_answer(body)
                self._answer(said["status"], said["body"])

            def _answer(self, status: int, body: object) -> None:
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
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
