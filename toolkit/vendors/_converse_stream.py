"""Bedrock's streamed answers: ConverseStream, in frames of `application/vnd.amazon.eventstream`."""

import json
from importlib import import_module
from typing import Any

from toolkit.plugins.streaming import (
    AnswerPiece,
    AnswerPieces,
    BrokenStreamError,
    WholeAnswer,
    build_answer,
)
from toolkit.vendors._http import Json, get_object

# Status by the union member of the stream's exception (API reference, ConverseStream).
_STATUSES_OF_EXCEPTIONS = {
    "validationException": 400,
    "modelStreamErrorException": 424,
    "throttlingException": 429,
    "internalServerException": 500,
    "serviceUnavailableException": 503,
}


class ConverseReader:
    """A reader of Converse's streamed answers.

    Args:
        frames: botocore's buffer of frames, which validates their checksums.
    """

    media_type = "application/vnd.amazon.eventstream"

    def __init__(self, frames: Any) -> None:
        self._frames = frames
        self._body: Json = {}
        self._blocks: dict[int, Json] = {}
        self._failure: WholeAnswer | None = None
        self._pieces = AnswerPieces()

    def read(self, data: bytes) -> list[AnswerPiece]:
        """Read the frames that arrived, and return the pieces in them.

        Raises:
            BrokenStreamError: a frame is damaged, or holds no JSON object.
        """
        self._frames.add_data(data)
        try:
            return [piece for frame in self._frames for piece in self._read_frame(frame)]
        except (ValueError, RecursionError, import_module("botocore.eventstream").ParserError):
            raise BrokenStreamError("a frame of the stream is damaged") from None

    def _read_frame(self, frame: Any) -> list[AnswerPiece]:
        headers, payload = frame.headers, json.loads(frame.payload or b"{}")
        if not isinstance(payload, dict):
            raise BrokenStreamError("a frame of the stream is no JSON object")
        if headers.get(":message-type") != "event":
            self._failure = _build_exception(headers, payload)
            return []
        match headers.get(":event-type"):
            case "contentBlockStart":
                return self._begin_block(payload)
            case "contentBlockDelta":
                return self._add_delta(payload)
            case "messageStop":
                self._body["stopReason"] = payload.get("stopReason")
            case "metadata":
                names = ("usage", "metrics", "serviceTier")
                self._body |= {name: payload[name] for name in names if name in payload}
        return []

    def _begin_block(self, payload: Json) -> list[AnswerPiece]:
        place, tool = payload.get("contentBlockIndex"), get_object(payload, "start").get("toolUse")
        if not isinstance(place, int) or not isinstance(tool, dict):
            return []
        self._blocks[place] = {"toolUse": {**tool, "input": ""}}
        return self._pieces.add_call(place, id=tool.get("toolUseId"), name=tool.get("name"))

    def _add_delta(self, payload: Json) -> list[AnswerPiece]:
        place, delta = payload.get("contentBlockIndex"), get_object(payload, "delta")
        if not isinstance(place, int):
            return []
        text, spelled = delta.get("text"), get_object(delta, "toolUse").get("input")
        thought = get_object(delta, "reasoningContent").get("text")
        block = self._blocks.setdefault(place, {})
        if isinstance(spelled, str):  # a piece of JSON
            block.setdefault("toolUse", {"input": ""})["input"] += spelled
            return self._pieces.add_call(place, spelled)
        if isinstance(thought, str):
            kept = block.setdefault("reasoningContent", {"reasoningText": {"text": ""}})
            kept["reasoningText"]["text"] += thought
        if isinstance(text, str):
            block["text"] = f"{block.get('text', '')}{text}"
        return self._pieces.add_reasoning(thought, place) + self._pieces.add_text(text)

    def assemble(self) -> WholeAnswer | None:
        """Assemble the answer or the reported failure; None if the stream ended before either."""
        if self._failure is not None or "stopReason" not in self._body:
            return self._failure
        content = [self._blocks[place] for place in sorted(self._blocks)]
        message = {"role": "assistant", "content": content}
        return build_answer({"output": {"message": message}, **self._body})


def make_converse_reader() -> ConverseReader | None:
    """Make a reader, or return None if botocore, which parses the frames, is not installed."""
    try:
        return ConverseReader(import_module("botocore.eventstream").EventStreamBuffer())
    except ImportError:
        return None


def _build_exception(headers: dict[str, Any], payload: Json) -> WholeAnswer:
    name = str(headers.get(":exception-type") or headers.get(":error-code") or "")
    words = payload.get("message") or headers.get(":error-message")
    body = {"__type": name[:1].upper() + name[1:], "message": words}
    return build_answer(body, _STATUSES_OF_EXCEPTIONS.get(name, 500))
