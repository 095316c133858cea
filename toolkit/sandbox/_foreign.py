"""Parsing and writing of languages other than English, from sentences that are data."""

import re
from dataclasses import dataclass
from itertools import cycle, islice

from toolkit.sandbox._language import Language, languages, written_in

_CJK = "\u3040-\u30ff\u3400-\u9fff"
_COUNTED = re.compile(rf"[{_CJK}]|[^\s{_CJK}\u3000-\u303f\uff00-\uffef]+")
_ENDS = ".!?。！？؟।"
_CUT = re.compile(r"[.,;:!?。，！？،؟।\n(（「『」』]")
_SENTENCE = re.compile(r"[^.!?。！？؟।\n]+[.!?。！？؟।]")


@dataclass(frozen=True, slots=True)
class Form:
    """The form that a request in another language asks for."""

    words: int | None = None
    sentences: int | None = None
    bullets: int | None = None


def count_words(text: str) -> int:
    """Count words by spaces, and characters where words have none between them.

    >>> count_words("潮汐很重要。"), count_words("Tides turn.")
    (5, 2)
    """
    return len(_COUNTED.findall(text))


def read_form(text: str, code: str) -> Form:
    """Parse how long an answer is to be from a request in its own language."""
    language = languages().get(code)
    if language is None:
        return Form()
    return Form(
        **{unit: _number(language, pattern, text) for unit, pattern in language.units.items()}
    )


def _number(language: Language, unit: str, text: str) -> int | None:
    numbers = "|".join(language.numbers)
    edge = r"(?<!\w)" if language.spaced else ""
    match = re.search(rf"{edge}(\d+|{numbers})\s*(?:{unit})", text, re.I)
    if match is None:
        return None
    if match.group(1).isdigit():
        return max(1, min(int(match.group(1)), 2000))
    spelt = enumerate(language.numbers, start=1)
    return next((n for n, one in spelt if re.fullmatch(one, match.group(1), re.I)), None)


def read_topic(objective: str, code: str) -> str:
    """Parse the few words that a request in another language is about; empty if it has none."""
    language = languages().get(code)
    for pattern in language.about if language else ():
        match = re.search(
            rf"(?<!\w){pattern}" if language and language.spaced else pattern, objective, re.I
        )
        if match:
            piece = next((p for p in _CUT.split(match.group(1)) if p.strip()), "")
            return _trimmed(piece, language)
    return ""


def _trimmed(piece: str, language: Language | None) -> str:
    """Trim the words that name the language or the form from a topic."""
    names = "|".join(map(re.escape, language.names)) if language else ""
    piece = re.sub(rf"\s(?:auf|en|in|em|op|на)\s+(?:{names})\b.*", "", piece, flags=re.I)
    kept = piece.split() if language is None or language.spaced else [piece.strip()]
    if language is not None and language.about[0].startswith("(.+"):  # what it is about leads
        kept = kept[-4:]
    while kept and language is not None and kept[0].lower() in language.words and len(kept) > 1:
        kept.pop(0)
    return " ".join(kept[:6])[:80]


def sentences_in(code: str, topic: str, source: str) -> list[str]:
    """Select the sentences to write from: those of a given text in the language, else ours."""
    handed = [match.group().strip() for match in _SENTENCE.finditer(source)]
    ours = [one.format(topic=topic) for one in languages()[code].sentences]
    ours = [one[:1].upper() + one[1:] for one in ours]
    return handed if len(handed) >= 2 and written_in(source) == code else ours


def title_in(code: str, topic: str) -> str:
    """Write a title: the topic, and a short promise."""
    language = languages()[code]
    colon = ": " if language.spaced else "："
    return f"{topic[:1].upper()}{topic[1:]}{colon}{language.headline}"


def join_in(code: str, sentences: list[str]) -> str:
    """Join sentences to one text, with spaces if the language has them."""
    return (" " if languages()[code].spaced else "").join(sentences)


def take(sentences: list[str], number: int) -> list[str]:
    """Take so many sentences, starting over where there are not enough."""
    return list(islice(cycle(sentences), number))


def exactly_in(code: str, sentences: list[str], number: int) -> str:
    """Write a text of exactly so many words, in whole sentences."""
    chosen: list[str] = []
    left, added = number, True
    while added and left:
        added = False
        for sentence in sentences:
            size = count_words(sentence)
            if size <= left and left - size != 1:
                chosen.append(sentence)
                left, added = left - size, True
    two, three = languages()[code].tails
    while left >= 2:
        tail = three if left == 3 or left > 4 else two
        chosen.append(tail)
        left -= count_words(tail)
    if left and not chosen:  # one word
        chosen.append(_COUNTED.findall(sentences[0])[0].rstrip(_ENDS) + two[-1])
    return join_in(code, chosen)


def within_in(code: str, sentences: list[str], limit: int) -> str:
    """Write whole sentences, as many as fit in so many words."""
    chosen: list[str] = []
    for sentence in sentences[:6]:
        if count_words(join_in(code, [*chosen, sentence])) <= limit:
            chosen.append(sentence)
    return join_in(code, chosen) or exactly_in(code, sentences, limit)
