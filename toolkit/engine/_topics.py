"""Topic extraction for an objective whose deliverables are known; used by the objective reader."""

import re
from collections.abc import Sequence

from toolkit.engine import _lexicon as lex

LONGEST_TOPIC = 160
_WORD = re.compile(r"[^\s,;:]+")
_ENDS = re.compile(r"[.!?;\n](?=\s|$)")
_AUDIENCE = re.compile(
    r"\s+for\s+(?:an?|the|my|our|their|kids|children|beginners|students|teenagers|everyone|"
    r"schools?|young|older|adults|readers|instagram|linkedin|twitter|facebook)\b.*$",
    re.I | re.S,
)
_MANNER = re.compile(
    r",\s+(?:in|using|aimed|suitable|keep|make|no|at|with|for|then|please|under|plain|which|but)"
    r"\b.*$",
    re.I | re.S,
)
_NAMES_SUBJECT = frozenset({"of", "showing", "depicting", "for", "on"})
_ABOUT = re.compile(r"\s(?:about|regarding|concerning)\s", re.I)
_EDGES = " \t\r\n\"'“”«»‘’()[]{}.,;:!?-–—*#`"
_TRAILING = frozenset(
    lex.phrases(
        "and, or, with, please, the, a, an, as, in, on, of, for, to, into, plus, also, by, "
        "together, alongside, accompanied, from"
    )
)
_LEADING = frozenset({"the", "a", "an"})


def blank(
    text: str, patterns: Sequence[re.Pattern[str]], spans: Sequence[tuple[int, int]] = ()
) -> str:
    """Replace every match and span by as many spaces, so that positions stay the same."""
    cut = [match.span() for pattern in patterns for match in pattern.finditer(text)]
    for start, end in [*cut, *spans]:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def trim(text: str) -> str:
    """Strip a topic of the words around it and cut it to its maximum length.

    >>> trim(" “tidal power”, please ")
    'tidal power'
    """
    text = " ".join(text.split())
    text = _MANNER.sub("", _AUDIENCE.sub("", text)) or text
    words = text.strip(_EDGES).split(" ")
    while words and words[-1].strip(_EDGES).lower() in _TRAILING | {""}:
        words.pop()
    text = " ".join(words).strip(_EDGES)
    if len(text) > LONGEST_TOPIC:
        text = text[:LONGEST_TOPIC].rpartition(" ")[0] or text[:LONGEST_TOPIC]
    return text.strip(_EDGES)


def own_and_shared(tail: str, verb: bool) -> tuple[str, str]:
    """Return the topics that the words after a deliverable's name give.

    Args:
        tail: the text between its name and the next deliverable.
        verb: whether the name is a verb, whose object is its topic.

    Returns:
        the topic of this deliverable alone, and one that holds for its neighbours too.

    >>> own_and_shared(" of a turbine about tidal power", verb=False)
    ('a turbine', 'tidal power')
    """
    end = _ENDS.search(tail)
    if end is not None:
        tail = tail[: end.start()]
    if tail.lstrip().startswith((":", "—", "–")):
        return "", trim(tail)
    for place, match in enumerate(_WORD.finditer(tail)):
        if verb and place:
            return "", trim(tail)
        word = match.group().lower().strip(_EDGES)
        if word not in lex.ABOUT:
            continue
        rest = tail[match.end() :]
        further = _ABOUT.search(rest) if word in _NAMES_SUBJECT else None
        if further is not None:
            own = trim(rest[: further.start()]) if word != "for" else ""
            return own, trim(rest[further.end() :])
        return ("", trim(rest)) if trim(rest) else ("", "")
    return "", trim(tail) if verb else ""


def leftover(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return what remains of an objective without the deliverables and the words around them.

    >>> leftover("Please explain how tides work", [(7, 14)])
    'how tides work'
    """
    text = blank(text, [], spans)
    sentence = next((part for part in _ENDS.split(text) if _is_content(part)), text)
    preposition = re.search(r"\b(?:about|regarding|concerning)\s+(.+)$", sentence, re.I | re.S)
    if preposition is None and not spans:
        preposition = re.search(r"\b(?:on|of)\s+(.+)$", sentence, re.I | re.S)
    if preposition is not None and _is_content(preposition.group(1)):
        return trim(preposition.group(1))
    words = sentence.split()
    opening = lex.FILLER | {""}
    if words and words[0].lower() in lex.QUESTIONS:
        opening |= lex.QUESTIONS | lex.VERBS
    while words and words[0].strip(_EDGES).lower() in opening:
        words.pop(0)
    while words and words[-1].strip(_EDGES).lower() in lex.FILLER | {""}:
        words.pop()
    return trim(" ".join(words))


def title_of(topic: str) -> str:
    """Format a topic as a headline: no leading article, a capital first.

    >>> title_of("the tides of Venice")
    'Tides of Venice'
    """
    first, _, rest = topic.partition(" ")
    text = rest if rest and first.lower() in _LEADING else topic
    return text[:1].upper() + text[1:]


def _is_content(text: str) -> bool:
    words = (word.strip(_EDGES).lower() for word in text.split())
    return any(word and word not in lex.FILLER for word in words)
