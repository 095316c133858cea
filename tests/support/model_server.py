"""A self-hosted model server with recorded responses of llama-cpp-python."""

import json
from pathlib import Path
from typing import Any

from tests.support.loopback_server import JsonHandler, LoopbackServer

FACTS = json.loads(
    (Path(__file__).parents[1] / "vendors" / "facts" / "llama_cpp_python.json").read_text("utf-8")
)


def get_recorded_answer(body: dict[str, Any]) -> dict[str, Any]:
    """Return the server's recorded response to such a body; only `max_tokens` has an effect."""
    seen: dict[str, dict[str, Any]] = FACTS["exchanges"]
    response_format = body.get("response_format") or {}
    if isinstance(body.get("temperature"), str):
        return seen["bad_temperature"]
    if response_format.get("type") == "json_schema":
        return seen["json_schema"]
    if response_format.get("type") == "json_object":
        return seen["json_object_with_schema" if "schema" in response_format else "json_object"]
    return seen["text" if "max_tokens" in body else "newer_cap_alone"]


class ModelServer(LoopbackServer):
    """The server on loopback; `asked` holds the bodies that it received, in order."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        requests = self.asked

        class Handler(JsonHandler):
            def answer_get(self) -> None:
                self.send_json(200, FACTS["models"])

            def answer_post(self) -> None:
                body = self.read_json()
                requests.append(body)
                answer = get_recorded_answer(body)
                self.send_json(answer["status"], answer["body"])

        super().__init__(Handler)
