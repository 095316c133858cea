"""Call sites: find the call and the argument at the cursor from the preceding text alone.

The text is unfinished code that no parser accepts, so it is scanned once, from left to right.
"""

import re
from dataclasses import dataclass, field

_CALLEE = re.compile(r"[^\W\d][\w.]*\Z")
_KEYWORD = re.compile(r"\s*([^\W\d]\w*)\s*\Z")
_NAME = re.compile(r"[\w.]*\Z")


@dataclass(slots=True)
class CallSite:
    """The place of the cursor within a call or a subscript.

    Attributes:
        callee: name of the called or indexed object, such as `client.runs.create`; only its last
            part if it follows a closing bracket.
        is_subscript: whether the cursor is in `[…]`.
        position: index of the positional argument; None for a keyword argument.
        keyword: keyword of the argument; empty for a positional argument.
        texts: earlier arguments that are strings, by position or keyword.
        path: keys of the enclosing dictionaries, outermost first.
        is_key: whether the cursor is in a key of a dictionary.
        prefix: part of the name or string that is already written.
    """

    callee: str
    is_subscript: bool
    position: int | None
    keyword: str
    texts: dict[int | str, str]
    path: tuple[str, ...]
    is_key: bool
    in_string: bool
    prefix: str


@dataclass(slots=True)
class _Bracket:
    """An open bracket, and the progress of the scan inside it."""

    opener: str
    callee: str  # empty if nothing is called or indexed
    start: int  # index at which the present argument or member begins
    position: int = 0
    keyword: str = ""
    key: str = ""  # key of a dictionary whose value is being written
    text: str | None = None  # last string that was closed in the present argument
    texts: dict[int | str, str] = field(default_factory=dict)

    def end_part(self, index: int) -> None:
        """End an argument or member at a comma."""
        if self.text is not None:
            self.texts[self.keyword or self.position] = self.text
        if not self.keyword:
            self.position += 1
        self.start, self.keyword, self.key, self.text = index + 1, "", "", None


def find_call_site(text: str) -> CallSite | None:
    """Find the call or the subscript in which a text ends; return None outside of both.

    >>> site = find_call_site('client.runs.create("llm.generate", {"objec')
    >>> site.callee, site.position, site.texts, site.is_key, site.prefix
    ('client.runs.create', 1, {0: 'llm.generate'}, True, 'objec')
    """
    brackets, string = _read_brackets(text)
    prefix = text[string:] if string is not None else _NAME.search(text)[0]  # type: ignore[index]
    path: list[str] = []
    is_key = False
    for depth, bracket in enumerate(reversed(brackets)):
        if bracket.opener == "{":
            if bracket.key:
                path.append(bracket.key)
            elif depth == 0:
                is_key = True
        elif bracket.callee and (bracket.opener == "(" or depth == 0):
            return CallSite(
                callee=bracket.callee,
                is_subscript=bracket.opener == "[",
                position=None if bracket.keyword else bracket.position,
                keyword=bracket.keyword,
                texts=bracket.texts,
                path=tuple(reversed(path)),
                is_key=is_key,
                in_string=string is not None,
                prefix=prefix,
            )
    return None


def _read_brackets(text: str) -> tuple[list[_Bracket], int | None]:
    """Return the brackets open at the end of a text, and the start of an open string, or None."""
    brackets: list[_Bracket] = []
    index = 0
    while index < len(text):
        char = text[index]
        bracket = brackets[-1] if brackets else None
        if char in "\"'":
            start, end = _find_string(text, index)
            if end is None:
                return brackets, start
            if bracket is not None:
                bracket.text = text[start : end - (start - index)]
            index = end
            continue
        if char == "#":
            line_end = text.find("\n", index)
            if line_end < 0:
                return [], None
            index = line_end
        elif char in "([{":
            brackets.append(_Bracket(char, _find_callee(text[:index], char), index + 1))
        elif char in ")]}" and bracket is not None:
            brackets.pop()
            if brackets:
                brackets[-1].text = None
        elif bracket is not None:
            _read_sign(bracket, text, index)
        index += 1
    return brackets, None


def _read_sign(bracket: _Bracket, text: str, index: int) -> None:
    char = text[index]
    if char == ",":
        bracket.end_part(index)
    elif char == ":" and bracket.opener == "{" and not bracket.key:
        bracket.key, bracket.text = bracket.text or "?", None
    elif char == "=" and bracket.opener == "(" and text[index + 1 : index + 2] != "=":
        match = _KEYWORD.match(text[bracket.start : index])
        bracket.keyword = bracket.keyword or (match[1] if match else "")


def _find_callee(before: str, opener: str) -> str:
    if opener == "{":
        return ""
    match = _CALLEE.search(before)
    if match is None:
        # The result of a call or a subscript has no name of its own.
        return ")" if opener == "[" and before[-1:] in (")", "]") else ""
    return match[0].lstrip(".")


def _find_string(text: str, index: int) -> tuple[int, int | None]:
    """Find the start of a string's text, and its end; the end is None if it is not closed."""
    quote = text[index] * 3 if text.startswith(text[index] * 3, index) else text[index]
    start = index + len(quote)
    at = start
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text.startswith(quote, at):
            return start, at + len(quote)
        elif text[at] == "\n" and len(quote) == 1:
            return start, at  # the string was never closed, so the next line is code again
        else:
            at += 1
    return start, None
