"""Parsing and writing of languages other than English, from sentences that are data."""

import re
from dataclasses import dataclass
from itertools import cycle, islice

from toolkit.sandbox.text.languages import Language, detect_written_language, load_languages

_CJK = "\u3040-\u30ff\u3400-\u9fff"
_COUNTED_WORD = re.compile(rf"[{_CJK}]|[^\s{_CJK}\u3000-\u303f\uff00-\uffef]+")
_SENTENCE_ENDS = ".!?。！？؟।"
_PHRASE_END = re.compile(r"[.,;:!?。，！？،؟।\n(（「『」』]")
_SENTENCE = re.compile(r"[^.!?。！？؟।\n]+[.!?。！？؟।]")


@dataclass(frozen=True, slots=True)
class RequestedForm:
    """The form that a request in another language asks for."""

    words: int | None = None
    sentences: int | None = None
    bullets: int | None = None


def count_words(text: str) -> int:
    """Count words by spaces, and characters where words have none between them.

    >>> count_words("潮汐很重要。"), count_words("Tides turn.")
    (5, 2)
    """
    return len(_COUNTED_WORD.findall(text))


def parse_form(text: str, code: str) -> RequestedForm:
    """Parse how long an answer is to be from a request in its own language."""
    language = load_languages().get(code)
    if language is None:
        return RequestedForm()
    return RequestedForm(
        **{unit: _parse_number(language, pattern, text) for unit, pattern in language.units.items()}
    )


def _parse_number(language: Language, unit: str, text: str) -> int | None:
    numbers = "|".join(language.numbers)
    edge = r"(?<!\w)" if language.spaced else ""
    match = re.search(rf"{edge}(\d+|{numbers})\s*(?:{unit})", text, re.I)
    if match is None:
        return None
    if match.group(1).isdigit():
        return max(1, min(int(match.group(1)), 2000))
    spelt = enumerate(language.numbers, start=1)
    return next((n for n, one in spelt if re.fullmatch(one, match.group(1), re.I)), None)


def parse_topic(objective: str, code: str) -> str:
    """Parse the few words that a request in another language is about; empty if it has none."""
    language = load_languages().get(code)
    for pattern in language.about if language else ():
        match = re.search(
            rf"(?<!\w){pattern}" if language and language.spaced else pattern, objective, re.I
        )
        if match:
            piece = next((p for p in _PHRASE_END.split(match.group(1)) if p.strip()), "")
            return _trim_topic(piece, language)
    return ""


def _trim_topic(piece: str, language: Language | None) -> str:
    """Trim the words that name the language or the form from a topic."""
    names = "|".join(map(re.escape, language.names)) if language else ""
    piece = re.sub(rf"\s(?:auf|en|in|em|op|на)\s+(?:{names})\b.*", "", piece, flags=re.I)
    kept = piece.split() if language is None or language.spaced else [piece.strip()]
    if language is not None and language.about[0].startswith("(.+"):  # what it is about leads
        kept = kept[-4:]
    while kept and language is not None and kept[0].lower() in language.words and len(kept) > 1:
        kept.pop(0)
    return " ".join(kept[:6])[:80]


def select_sentences(code: str, topic: str, source: str) -> list[str]:
    """Select the sentences to write from: those of a given text in the language, else ours."""
    handed = [match.group().strip() for match in _SENTENCE.finditer(source)]
    ours = [one.format(topic=topic) for one in load_languages()[code].sentences]
    ours = [one[:1].upper() + one[1:] for one in ours]
    return handed if len(handed) >= 2 and detect_written_language(source) == code else ours


def write_title(code: str, topic: str) -> str:
    """Write a title: the topic, and a short promise."""
    language = load_languages()[code]
    colon = ": " if language.spaced else "："
    return f"{topic[:1].upper()}{topic[1:]}{colon}{language.headline}"


def join_sentences(code: str, sentences: list[str]) -> str:
    """Join sentences to one text, with spaces if the language has them."""
    return (" " if load_languages()[code].spaced else "").join(sentences)


def take_sentences(sentences: list[str], number: int) -> list[str]:
    """Take so many sentences, starting over where there are not enough."""
    return list(islice(cycle(sentences), number))


def write_exact_length(code: str, sentences: list[str], number: int) -> str:
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
    two, three = load_languages()[code].tails
    while left >= 2:
        tail = three if left == 3 or left > 4 else two
        chosen.append(tail)
        left -= count_words(tail)
    if left and not chosen:  # one word
        chosen.append(_COUNTED_WORD.findall(sentences[0])[0].rstrip(_SENTENCE_ENDS) + two[-1])
    return join_sentences(code, chosen)


def write_within_length(code: str, sentences: list[str], limit: int) -> str:
    """Write whole sentences, as many as fit in so many words."""
    chosen: list[str] = []
    for sentence in sentences[:6]:
        if count_words(join_sentences(code, [*chosen, sentence])) <= limit:
            chosen.append(sentence)
    return join_sentences(code, chosen) or write_exact_length(code, sentences, limit)
