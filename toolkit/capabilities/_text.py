"""Plain text work that several capabilities share: cleaning, sentences, shortening."""

import re

_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_SENTENCE_END = re.compile(r"[.!?…؟]+[\"'”’»)\]]*(?=\s|$)|[。！？]+[」』”]*")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[^\W\d_]|e\.g|i\.e|cf|ca|vs|no|dr|mr|mrs|ms|prof|st|approx|fig|inc|jr|sr)\.$",
    re.IGNORECASE,
)
_MARKDOWN_MARKS = re.compile(r"^\s{0,3}(?:#{1,6}\s+|>\s?|[-*+]\s+)|\*\*|__|`", re.MULTILINE)


def clean(text: str) -> str:
    """Remove control characters, lone surrogates and outer white space; end lines with a line feed.

    >>> clean("tide\\x00 mill\\r\\n")
    'tide mill'
    """
    return _CONTROL_CHARACTERS.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip()


def strip_markup(text: str) -> str:
    """Remove the most common Markdown marks, which would be drawn literally.

    >>> strip_markup("## Tides\\n**High** water")
    'Tides\\nHigh water'
    """
    return _MARKDOWN_MARKS.sub("", text).strip()


def shorten(text: str, limit: int) -> str:
    """Return the first whole sentences that fit in `limit` characters, else as many words as fit.

    >>> shorten("Tides turn. They turn twice a day.", 20)
    'Tides turn.'
    >>> shorten("Tides turn twice a day", 12)
    'Tides turn…'
    """
    text = text.strip()
    if len(text) <= limit:
        return text
    best = 0
    for match in _SENTENCE_END.finditer(text):
        if match.end() > limit:
            break
        if not _ABBREVIATION.search(text[max(0, match.start() - 8) : match.end()]):
            best = match.end()
    if best:
        return text[:best]
    head = text[:limit]
    space = max(head.rfind(" "), head.rfind("\n"))
    return head[: space if space > limit // 2 else limit - 1].rstrip(" \n,;:–-") + "…"


def ends_sentence(text: str) -> bool:
    """Check whether text ends like a sentence, which a heading does not."""
    return bool(re.search(r"[.!?…؟。！？][\"'”’»)\]」』]*$", text.rstrip()))
