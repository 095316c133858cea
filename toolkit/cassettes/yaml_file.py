"""The file of a cassette, which holds recorded answers.

It is YAML, which people can read and compare. Each write replaces the file completely.
"""

import base64
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
import yaml

from toolkit.cassettes.matching import RequestKey
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.plugins import RECORDED_MODEL

FORMAT_VERSION = 1
FILE_HEADER = f"version: {FORMAT_VERSION}\nexchanges:"
_EMPTY_FILE = f"{FILE_HEADER} []\n"
_ANSWER_KEYS = {"vendor", "when", "text"}
# YAML reads these characters as line breaks and would not restore them.
_ODD_LINE_BREAKS = re.compile("[\x85\u2028\u2029\ufeff]")
_CONTROL_BYTES = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
# libyaml if it is installed, because bodies are megabytes. Both make plain values only.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """A request and its answer, scrubbed, with the body decoded.

    Attributes:
        model: model of the request if the key leaves it out (`get_requested_model`).
    """

    key: RequestKey
    status: int
    headers: dict[str, str]
    body: bytes
    model: str = ""

    def to_response(self) -> httpx.Response:
        """Return the answer as a new response."""
        extensions = {RECORDED_MODEL: self.model} if self.model else None
        return httpx.Response(
            self.status, headers=self.headers, content=self.body, extensions=extensions
        )


@dataclass(frozen=True, slots=True)
class HandMadeAnswer:
    """A text written by a person, which simulated models return as their answer.

    Attributes:
        when: words that a prompt must contain to get this answer.
        text: text of the answer.
        vendor: vendor of the models that return it; `*` for all vendors.
    """

    when: str
    text: str
    vendor: str = "*"


def as_yaml(exchange: RecordedExchange) -> str:
    """Return an exchange as an item of the file's list."""
    key, answer = exchange.key, {"status": exchange.status, "headers": exchange.headers}
    request = {"method": key.method, "url": key.url}
    if exchange.model:
        request["model"] = exchange.model
    if key.body:
        request["body"] = key.body
    item = {"request": request, "response": {**answer, **_body_as_yaml(exchange.body)}}
    text: str = yaml.dump(
        [item], Dumper=_BlockDumper, sort_keys=False, allow_unicode=True, width=1 << 30
    )
    return text


def write_items(path: Path, items: Sequence[str]) -> None:
    """Replace the file atomically; only its owner may read it.

    Raises:
        OSError: the file cannot be written; the former file is unchanged.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write("\n".join([FILE_HEADER, *items]) if items else _EMPTY_FILE)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def has_content(path: Path) -> bool:
    """Check whether the file exists and is not empty."""
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def is_foreign(path: Path) -> bool:
    """Check whether the path exists and is no cassette, not even a damaged cassette.

    Raises:
        OSError: the file cannot be read.
    """
    if path.is_dir():
        return True
    if not has_content(path):
        return False
    with path.open("rb") as opened:
        return opened.read(len(b"version:")) != b"version:"


def read_exchanges(path: Path) -> list[RecordedExchange]:
    """Read a cassette's exchanges, in their order.

    Raises:
        ServiceError: as `read_cassette`.
    """
    return read_cassette(path)[0]


def read_cassette(path: Path) -> tuple[list[RecordedExchange], list[HandMadeAnswer]]:
    """Read a cassette's exchanges, in order, or the answers of a cassette made by hand.

    Raises:
        ServiceError: `UNAVAILABLE` for a file that cannot be read, is damaged, or was made by a
            later version.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise _make_error(path, f"cannot be read: {reason}") from None
    return parse_cassette(text, path)


def parse_cassette(text: str, path: Path) -> tuple[list[RecordedExchange], list[HandMadeAnswer]]:
    """Parse the text of a cassette.

    Args:
        path: path of the file, for messages.

    Raises:
        ServiceError: as `read_cassette`.
    """
    try:
        value = _load_yaml(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        position = f" in line {mark.line + 1}" if mark is not None else ""
        raise _make_error(path, f"is damaged{position}: record it again") from None
    version = value.get("version") if isinstance(value, dict) else None
    if not isinstance(value, dict) or type(version) is not int:
        raise _make_error(path, "is not a cassette: it does not begin with a version")
    if version != FORMAT_VERSION:
        reason = f"was made by a later version of the toolkit (format {version}): upgrade"
        raise _make_error(path, reason)
    exchanges, answers = value.get("exchanges") or [], value.get("answers") or []
    if not isinstance(exchanges, list):
        raise _make_error(path, "is damaged: `exchanges` is not a list")
    if not isinstance(answers, list):
        raise _make_error(path, "is damaged: `answers` is not a list")
    if answers and (exchanges or not isinstance(value.get("made_by"), str)):
        raise _make_error(path, "has answers made by hand: add made_by, and remove exchanges")
    return (
        [_parse_exchange(path, number, item) for number, item in enumerate(exchanges, 1)],
        [_parse_answer(path, number, item) for number, item in enumerate(answers, 1)],
    )


def _parse_answer(path: Path, number: int, item: object) -> HandMadeAnswer:
    if not isinstance(item, dict) or not {"when", "text"} <= item.keys() <= _ANSWER_KEYS:
        raise _make_error(path, f"is damaged: answer {number} must have `when` and `text`")
    if not all(isinstance(text, str) and text.strip() for text in item.values()):
        raise _make_error(path, f"is damaged: answer {number} has an empty text, or no text")
    return HandMadeAnswer(**item)


def _load_yaml(text: str) -> object:
    loader = _Loader(text)
    try:
        value: object = loader.get_single_data()
    finally:
        loader.dispose()
    return value


def _parse_exchange(path: Path, number: int, item: object) -> RecordedExchange:
    try:
        request, answer = item["request"], item["response"]  # type: ignore[index]
        key = RequestKey(request["method"], request["url"], request.get("body", ""))
        status, headers = answer["status"], answer.get("headers") or {}
        body, model = _decode_body(answer), request.get("model", "")
        texts = [*key, *headers.keys(), *headers.values(), model]
        if type(status) is not int or not all(isinstance(text, str) for text in texts):
            raise TypeError
    except (AttributeError, KeyError, TypeError, ValueError):
        raise _make_error(path, f"is damaged: exchange {number} is incomplete") from None
    return RecordedExchange(key, status, dict(headers), body, model)


def _make_error(path: Path, problem: str) -> ServiceError:
    return ServiceError(ErrorCode.UNAVAILABLE, f"The cassette `{path.name}` {problem}.")


class _BlockDumper(_Dumper):  # type: ignore[misc, valid-type]
    """A dumper that writes long or multi-line texts as blocks, and escapes odd line breaks."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if _ODD_LINE_BREAKS.search(text):
        style = '"'
    elif "\n" in text or len(text) > 80:
        style = "|"
    node: yaml.ScalarNode = dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
    return node


_BlockDumper.add_representer(str, _represent_text)


def _body_as_yaml(body: bytes) -> dict[str, str]:
    if not body:
        return {}
    try:
        if not _CONTROL_BYTES.search(body):
            return {"body": body.decode("utf-8")}
    except UnicodeDecodeError:
        pass
    return {"body_base64": base64.encodebytes(body).decode("ascii")}


def _decode_body(answer: dict[str, str]) -> bytes:
    if "body_base64" in answer:
        return base64.b64decode("".join(answer["body_base64"].split()), validate=True)
    return answer.get("body", "").encode("utf-8")
