"""Quotes found in a text as a model copies them: other marks, spaces, letter case, left-out parts.

The planner's nodes quote the objective, and the judge's findings the texts they are about.
"""

import re
import unicodedata

_ELLIPSIS = re.compile(r"…|\.\.\.|\[\s*…?\s*\]")
_WORD = re.compile(r"\w+")


class QuotedText:
    """A text, and which of its letters have been quoted.

    >>> text = QuotedText("A poem about tea, on a card.")
    >>> text.mark('“a POEM … tea on”'), text.mark("a novel")
    (True, False)
    >>> [word for word, is_marked in text.list_words() if is_marked]
    ['A', 'poem', 'tea', 'on']
    """

    def __init__(self, text: str) -> None:
        self._text = unicodedata.normalize("NFC", text)
        self._marked = bytearray(len(self._text))
        letters = [
            (letter, at) for at, sign in enumerate(self._text) for letter in fold_letters(sign)
        ]
        self._letters = "".join(letter for letter, _ in letters)
        self._places = [at for _, at in letters]

    def mark(self, quote: str) -> bool:
        """Mark the quoted letters, and return whether all parts of the quote match, in order."""
        parts = [letters for part in _ELLIPSIS.split(quote) if (letters := fold_letters(part))]
        spans, start = [], 0
        for letters in parts:
            at = self._find(letters, start)
            if at is not None:
                spans.append((at, at + len(letters)))
                start = at + len(letters)
        for first, end in spans:
            for at in self._places[first:end]:
                self._marked[at] = 1
        return bool(parts) and len(spans) == len(parts)

    def list_words(self) -> list[tuple[str, bool]]:
        """List the words of the text, each with whether a part of it has been quoted."""
        return [
            (word[0], any(self._marked[word.start() : word.end()]))
            for word in _WORD.finditer(self._text)
        ]

    def _find(self, letters: str, start: int) -> int | None:
        """Find letters, as whole words in scripts with spaces; return their place, or None."""
        at = self._letters.find(letters, start)
        while at >= 0:
            if self._is_edge(at) and self._is_edge(at + len(letters)):
                return at
            at = self._letters.find(letters, at + 1)
        return None

    def _is_edge(self, at: int) -> bool:
        if at in (0, len(self._places)):
            return True
        before, after = self._places[at - 1], self._places[at]
        return after > before + 1 or is_dense(self._text[before]) or is_dense(self._text[after])


def fold_letters(text: str) -> str:
    """Fold a text to its letters and digits, in one case and form.

    >>> fold_letters("“Größe № 5”, he said")
    'grösseno5hesaid'
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(sign for sign in folded if sign.isalnum())


def is_dense(sign: str) -> bool:
    """Check whether a sign is of a script that puts no spaces between words."""
    return unicodedata.east_asian_width(sign) in "WF"
