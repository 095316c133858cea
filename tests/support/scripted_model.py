"""A language model with answers written by a test: an OpenAI-compatible server on a real socket."""

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.loopback_server import JsonHandler, LoopbackServer
from tests.support.timing import PATIENCE_S

MODEL = "scripted-1"
PLAIN_TEXT = "Leaves steep in hot water. The kitchen fills with steam, and somebody hums."


@dataclass(frozen=True, slots=True)
class Say:
    """An answer of the model.

    Attributes:
        text: text of the answer.
        finish: reason for its end.
        status: HTTP status; other than 200 for a server that fails.
        hangs: True if the answer never arrives.
    """

    text: str = ""
    finish: str = "stop"
    status: int = 200
    hangs: bool = False


def get_kind(body: dict[str, Any]) -> str:
    """Return the kind of a request: `plan`, `verdict` or `text`."""
    response_format = json.dumps(body.get("response_format") or {})
    if '"deliverables"' in response_format:
        return "plan"
    return "verdict" if '"findings"' in response_format else "text"


class ScriptedModel(LoopbackServer):
    """The server; `asked` holds the bodies that it received, in order, by kind.

    A scripted answer is given once, to a request of its kind. After the last scripted answer, a
    text is plain, a verdict finds nothing, and a plan is refused.
    """

    def __init__(self) -> None:
        self.asked: dict[str, list[dict[str, Any]]] = {"plan": [], "verdict": [], "text": []}
        self._scripts: dict[str, list[Say]] = {"plan": [], "verdict": [], "text": []}
        self._closing = threading.Event()
        model = self

        class Handler(JsonHandler):
            def answer_get(self) -> None:
                """List the only model."""
                self.send_json(200, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})

            def answer_post(self) -> None:
                """Answer a chat, complete or as a stream."""
                body = self.read_json()
                say = model.take_answer(body)
                if say.hangs:
                    model.wait_for_close()
                    self.close_connection = True
                elif say.status != 200:
                    self.send_json(say.status, {"error": {"message": "It is out of order."}})
                elif body.get("stream"):
                    self._stream(say)
                else:
                    message = {"role": "assistant", "content": say.text}
                    choice = {"index": 0, "message": message, "finish_reason": say.finish}
                    self.send_json(200, {**_HEAD, "choices": [choice], "usage": _USAGE})

            def _stream(self, say: Say) -> None:
                delta = {"role": "assistant", "content": say.text}
                choices = [
                    {"index": 0, "delta": delta, "finish_reason": None},
                    {"index": 0, "delta": {}, "finish_reason": say.finish},
                ]
                chunks = [{**_HEAD, "choices": [part]} for part in choices]
                chunks.append({**_HEAD, "choices": [], "usage": _USAGE})
                events = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
                content = "".join([*events, "data: [DONE]\n\n"]).encode()
                self.send_content(200, content, "text/event-stream")

        super().__init__(Handler)

    def script(
        self,
        *plans: Say | str,
        verdicts: Sequence[Say | str] = (),
        texts: Sequence[Say | str] = (),
    ) -> None:
        """Script the next answers, and forget earlier requests."""
        for kind, answers in (("plan", plans), ("verdict", verdicts), ("text", texts)):
            self._scripts[kind] = [Say(item) if isinstance(item, str) else item for item in answers]
            self.asked[kind] = []

    def take_answer(self, body: dict[str, Any]) -> Say:
        """Take the answer to a request."""
        kind = get_kind(body)
        self.asked[kind].append(body)
        if self._scripts[kind]:
            return self._scripts[kind].pop(0)
        return {
            "plan": Say("I would rather not."),
            "verdict": Say('{"findings": []}'),
            "text": Say(PLAIN_TEXT),
        }[kind]

    def wait_for_close(self) -> None:
        """Wait until the server is closed."""
        self._closing.wait(PATIENCE_S)

    def close(self) -> None:
        """Stop serving."""
        self._closing.set()
        super().close()


_HEAD: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": MODEL,
}
_USAGE = {"prompt_tokens": 900, "completion_tokens": 300, "total_tokens": 1200}
