"""The streamed form of the chat API that OpenAI-compatible vendors share."""

from typing import Any

from toolkit.plugins.streaming import AnswerPiece, JsonEventReader, WholeAnswer, build_answer
from toolkit.vendors._chat import split_content
from toolkit.vendors._http import Json, get_first, get_object

# Ask for a stream with its usage at the end, because its cost would be unknown otherwise.
STREAM_FIELDS: Json = {"stream": True, "stream_options": {"include_usage": True}}
_NUMBERS_OF_ERRORS = range(400, 600)


class ChatStreamReader(JsonEventReader):
    """A reader of streamed chat completions with a single choice."""

    def __init__(self) -> None:
        super().__init__()
        self._body: Json = {}
        self._message: dict[str, str] = {}
        self._calls: dict[int, Json] = {}
        self._finish: object = None
        self._final_message: Json = {}
        self._failure: Json | None = None

    def _add_event(self, event: Json) -> list[AnswerPiece]:
        if event.get("error"):
            self._failure = event
            return []
        # Later values win, because the last event has the fullest values, such as the usage.
        self._body |= {n: v for n, v in event.items() if n != "choices" and v is not None}
        choice = get_first(event, "choices")
        if choice.get("index", 0) != 0:
            return []
        self._finish = choice.get("finish_reason") or self._finish
        if isinstance(choice.get("message"), dict):
            # Some vendors repeat the whole answer at the end.
            self._final_message = choice["message"]
            return []
        return self._add_delta(get_object(choice, "delta"))

    def _add_delta(self, delta: Json) -> list[AnswerPiece]:
        delta = split_content(delta)
        for name in ("content", "refusal", "reasoning_content", "reasoning"):
            piece = delta.get(name)
            if isinstance(piece, str):
                self._message[name] = self._message.get(name, "") + piece
        # Servers name the reasoning by one of two names (DeepSeek's and vLLM's API references).
        thoughts = delta.get("reasoning_content") or delta.get("reasoning")
        pieces = self._pieces.add_reasoning(thoughts) + self._pieces.add_text(delta.get("content"))
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                pieces += self._add_call(call)
        return pieces

    def _add_call(self, piece: Json) -> list[AnswerPiece]:
        """Add a piece of a request to call a tool, whose arguments come as pieces of JSON."""
        index = piece.get("index")
        place = index if isinstance(index, int) else len(self._calls)
        call = self._calls.setdefault(
            place,
            {"id": None, "type": "function", "function": {"name": "", "arguments": ""}},
        )
        call["id"] = piece.get("id") or call["id"]
        for name, text in get_object(piece, "function").items():
            if name in call["function"] and isinstance(text, str):
                call["function"][name] += text
        arguments = get_object(piece, "function").get("arguments")
        name = call["function"]["name"]
        return self._pieces.add_call(place, arguments, id=call["id"], name=name)

    def assemble(self) -> WholeAnswer | None:
        """Assemble the answer or the reported failure; None if the stream ended before either."""
        if self._failure is not None:
            return build_answer(self._failure, find_error_status(self._failure))
        base = get_object(self._body, "base_resp").get("status_code")
        if self._finish is None and not base:
            return None
        message: dict[str, Any] = {"role": "assistant", "content": None, **self._message}
        if self._calls:
            message["tool_calls"] = [self._calls[place] for place in sorted(self._calls)]
        message = self._final_message or message
        choice = {"index": 0, "message": message, "finish_reason": self._finish}
        return build_answer({**self._body, "choices": [choice] if self._finish else []})


def find_error_status(event: Json) -> int:
    """Return the HTTP status that an error of a stream would have without a stream, 500 if unknown.

    >>> find_error_status({"error": {"message": "Slow down.", "code": 429}})
    429
    """
    error = event.get("error")
    details = error if isinstance(error, dict) else {}
    for value in (details.get("status_code"), details.get("status"), details.get("code")):
        if isinstance(value, int) and value in _NUMBERS_OF_ERRORS:
            return value
    words = f"{details.get('type')} {details.get('code')}"
    if "rate_limit" in words or "insufficient_quota" in words:
        return 429
    return 400 if "invalid_request" in words else 500
