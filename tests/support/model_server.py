"""A model server of one's own: answers as llama-cpp-python gave them, by the rules it showed."""

import json
from pathlib import Path
from typing import Any

from tests.support.loopback_server import JsonHandler, LoopbackServer

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


class ModelServer(LoopbackServer):
    """The server on loopback; `asked` are the bodies that it was sent, in their order."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        asked = self.asked

        class Handler(JsonHandler):
            def answer_get(self) -> None:
                self.send_json(200, FACTS["models"])

            def answer_post(self) -> None:
                body = self.read_json()
                asked.append(body)
                said = get_recorded_answer(body)
                self.send_json(said["status"], said["body"])

        super().__init__(Handler)
