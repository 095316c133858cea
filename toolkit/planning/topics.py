"""Topic extraction for an objective whose deliverables are known; used by the objective reader."""

import re
from collections.abc import Sequence

from toolkit.planning import lexicon

MAX_TOPIC_CHARS = 160
_WORD = re.compile(r"[^\s,;:]+")
_SENTENCE_END = re.compile(r"[.!?;\n](?=\s|$)")
_AUDIENCE_CLAUSE = re.compile(
    r"\s+for\s+(?:an?|the|my|our|their|kids|children|beginners|students|teenagers|everyone|"
    r"schools?|young|older|adults|readers|instagram|linkedin|twitter|facebook)\b.*$",
    re.I | re.S,
)
_MANNER_CLAUSE = re.compile(
    r",\s+(?:in|using|aimed|suitable|keep|make|no|at|with|for|then|please|under|plain|which|but)"
    r"\b.*$",
    re.I | re.S,
)
_SUBJECT_PREPOSITIONS = frozenset({"of", "showing", "depicting", "for", "on"})
_ABOUT_PREPOSITION = re.compile(r"\s(?:about|regarding|concerning)\s", re.I)
_EDGE_CHARS = " \t\r\n\"'“”«»‘’()[]{}.,;:!?-–—*#`"
_TRAILING_WORDS = frozenset(
    lexicon.split_phrases(
        "and, or, with, please, the, a, an, as, in, on, of, for, to, into, plus, also, by, "
        "together, alongside, accompanied, from"
    )
)
_LEADING_ARTICLES = frozenset({"the", "a", "an"})


def blank_out(
    text: str, patterns: Sequence[re.Pattern[str]], spans: Sequence[tuple[int, int]] = ()
) -> str:
    """Replace every match and span by as many spaces, so that positions stay the same."""
    cut = [match.span() for pattern in patterns for match in pattern.finditer(text)]
    for start, end in [*cut, *spans]:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def trim_topic(text: str) -> str:
    """Strip a topic of the words around it and cut it to its maximum length.

    >>> trim_topic(" “tidal power”, please ")
    'tidal power'
    """
    text = " ".join(text.split())
    text = _MANNER_CLAUSE.sub("", _AUDIENCE_CLAUSE.sub("", text)) or text
    words = text.strip(_EDGE_CHARS).split(" ")
    while words and words[-1].strip(_EDGE_CHARS).lower() in _TRAILING_WORDS | {""}:
        words.pop()
    text = " ".join(words).strip(_EDGE_CHARS)
    if len(text) > MAX_TOPIC_CHARS:
        text = text[:MAX_TOPIC_CHARS].rpartition(" ")[0] or text[:MAX_TOPIC_CHARS]
    return text.strip(_EDGE_CHARS)


def split_topics(tail: str, verb: bool) -> tuple[str, str]:
    """Return the topics that the words after a deliverable's name give.

    Args:
        tail: the text between its name and the next deliverable.
        verb: whether the name is a verb, whose object is its topic.

    Returns:
        the topic of this deliverable alone, and one that holds for its neighbours too.

    >>> split_topics(" of a turbine about tidal power", verb=False)
    ('a turbine', 'tidal power')
    """
    end = _SENTENCE_END.search(tail)
    if end is not None:
        tail = tail[: end.start()]
    if tail.lstrip().startswith((":", "—", "–")):
        return "", trim_topic(tail)
    for place, match in enumerate(_WORD.finditer(tail)):
        if verb and place:
            return "", trim_topic(tail)
        word = match.group().lower().strip(_EDGE_CHARS)
        if word not in lexicon.ABOUT_WORDS:
            continue
        rest = tail[match.end() :]
        further = _ABOUT_PREPOSITION.search(rest) if word in _SUBJECT_PREPOSITIONS else None
        if further is not None:
            own = trim_topic(rest[: further.start()]) if word != "for" else ""
            return own, trim_topic(rest[further.end() :])
        return ("", trim_topic(rest)) if trim_topic(rest) else ("", "")
    return "", trim_topic(tail) if verb else ""


def find_leftover_topic(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return what remains of an objective without the deliverables and the words around them.

    >>> find_leftover_topic("Please explain how tides work", [(7, 14)])
    'how tides work'
    """
    text = blank_out(text, [], spans)
    sentence = next((part for part in _SENTENCE_END.split(text) if _is_content(part)), text)
    preposition = re.search(r"\b(?:about|regarding|concerning)\s+(.+)$", sentence, re.I | re.S)
    if preposition is None and not spans:
        preposition = re.search(r"\b(?:on|of)\s+(.+)$", sentence, re.I | re.S)
    if preposition is not None and _is_content(preposition.group(1)):
        return trim_topic(preposition.group(1))
    words = sentence.split()
    opening = lexicon.FILLER_WORDS | {""}
    if words and words[0].lower() in lexicon.QUESTION_WORDS:
        opening |= lexicon.QUESTION_WORDS | lexicon.VERBS
    while words and words[0].strip(_EDGE_CHARS).lower() in opening:
        words.pop(0)
    while words and words[-1].strip(_EDGE_CHARS).lower() in lexicon.FILLER_WORDS | {""}:
        words.pop()
    return trim_topic(" ".join(words))


def format_title(topic: str) -> str:
    """Format a topic as a headline: no leading article, a capital first.

    >>> format_title("the tides of Venice")
    'Tides of Venice'
    """
    first, _, rest = topic.partition(" ")
    text = rest if rest and first.lower() in _LEADING_ARTICLES else topic
    return text[:1].upper() + text[1:]


def _is_content(text: str) -> bool:
    words = (word.strip(_EDGE_CHARS).lower() for word in text.split())
    return any(word and word not in lexicon.FILLER_WORDS for word in words)
