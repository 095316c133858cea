"""Words and sentences: splitting, ranking by frequency and place, and shortening at clauses."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain

_STOPWORD_TEXT = """
a about above after again all also although always am among an and another any are around as at
away back be became because been before being below between both but by can cannot could did do
does doing done down during each either else enough even ever every few first for from further
get give given go goes had has have having he her here hers him his how however i if in instead
into is it its itself just keep kept last later least less let like made make makes many may me
might mine more most much must my near need never next no nor not nothing now of off often on
once one only onto or other our out over own part per perhaps put quite rather really same see
seen several she should since so some such take taken than that the their them then there these
they thing things this those though through thus to today together too toward under until up
upon us use used uses using very via was way we well were what when where whether which while
who whole whom whose why will with within without would yet you your
"""
STOPWORDS = frozenset(_STOPWORD_TEXT.split())

_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|st|dr|mr|mrs|ms)\.$", re.I)
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]”’]*\s+(?=[\"'(\[“‘]?[A-Z0-9])")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_HEADING = re.compile(r"^\s*(?:={2,}.*={2,}|#{1,6}\s.*)\s*$", re.M)
_BLOCK_END = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*•#]|\d+[.)]))")
_BULLET = re.compile(r"^\s*(?:[-*•#]+|\d+[.)])\s*")
_CLAUSE = re.compile(
    r",\s|;\s|:\s|\s[–—-]\s|\s\("
    r"|\s(?:because|although|while|whereas|which|where|when|until|before|after|as)\s"
)
# A sentence that begins so is not complete before its second clause.
_SUBORDINATE = re.compile(
    r"(?:because|although|though|while|when|whenever|if|as|since|after|before|once|until|unlike)\s",
    re.I,
)
MAX_REMEMBERED = 1000  # characters: a sentence, and no text that somebody handed over
# Words that a clause must not end with, as more has to follow.
_DANGLING = STOPWORDS - {"it", "us", "them", "now", "again", "today", "together", "well"}


def split_words(text: str) -> list[str]:
    """Split a text into words, in lower case."""
    return [word.lower() for word in _WORD.findall(text)]


def count_spaced_words(text: str) -> int:
    """Count words as a reader does: by the spaces between them."""
    return len(text.split())


def extract_content_words(text: str) -> list[str]:
    """Extract the words that carry meaning."""
    return [word for word in split_words(text) if word not in STOPWORDS and len(word) > 1]


@lru_cache(maxsize=16_384)
def stem_word(word: str) -> str:
    """Return a crude common form, so that `tides` and `tidal` count as one."""
    for ending in ("ational", "ation", "ings", "ing", "ally", "als", "ies", "al", "ed", "es"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word[:-1] if word.endswith(("s", "e", "y")) and len(word) > 3 else word


def extract_stems(text: str) -> set[str]:
    """Extract the stems of the words that carry meaning."""
    return set(list_stems(text))


def list_stems(text: str) -> tuple[str, ...]:
    """List the stems of the words that carry meaning, as they come."""
    return _remember_stems(text) if len(text) <= MAX_REMEMBERED else _find_stems(text)


def _find_stems(text: str) -> tuple[str, ...]:
    return tuple(map(stem_word, extract_content_words(text)))


# The sentences of an article, and what was made of them, are ranked again for each prompt on it.
_remember_stems = lru_cache(maxsize=4096)(_find_stems)


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences; a line break between blocks also ends one."""
    found: list[str] = []
    for block in _BLOCK_END.split(_HEADING.sub("\n\n", text)):
        flat = " ".join(_BULLET.sub("", block).split())
        start = 0
        for match in _SENTENCE_END.finditer(flat):
            if not _ABBREVIATION.search(flat[start : match.start()]):
                found.append(flat[start : match.end()].strip())
                start = match.end()
        if flat[start:].strip():
            found.append(flat[start:].strip())
    return found


def rank_sentences(sentences: Sequence[str], topic: str) -> list[int]:
    """Rank sentences by frequent words, early place and words of the topic; return indices."""
    stems = list(map(list_stems, sentences))
    frequency = Counter(chain.from_iterable(stems))
    wanted = extract_stems(topic)
    scores: list[tuple[float, int]] = []
    for place, (sentence, found) in enumerate(zip(sentences, stems, strict=True)):
        if not found:
            continue
        weight = sum(map(frequency.__getitem__, found)) / (len(found) + 4)
        position = 1.6 if place == 0 else 1.0 / (1 + place / 12)
        about = 1.0 + len(wanted & set(found)) / max(1, len(wanted))
        length = count_spaced_words(sentence)
        readable = 1.0 if 6 <= length <= 30 else 0.6
        scores.append((-weight * position * about * readable, place))
    return [place for _, place in sorted(scores)]


def select_best(sentences: Sequence[str], number: int, topic: str) -> list[str]:
    """Select the best sentences, in the order in which they stand in the text."""
    return [sentences[place] for place in sorted(rank_sentences(sentences, topic)[:number])]


def capitalize_first(text: str) -> str:
    """Return a text with a capital first letter."""
    return text[:1].upper() + text[1:]


def close_sentence(text: str) -> str:
    """End a piece of text with a full stop, unless it ends as a sentence does."""
    text = text.rstrip(" ,;:–—-(")
    return text if text.endswith((".", "!", "?", "。", "！", "？", "؟", "।")) else text + "."


def shorten_sentence(sentence: str, limit: int) -> str:
    """Shorten a sentence to at most `limit` words, where a clause ends if possible."""
    if count_spaced_words(sentence) <= limit:
        return close_sentence(sentence)
    fitting = [cut for cut in split_clauses(sentence) if count_spaced_words(cut) <= limit]
    if fitting:
        return close_sentence(fitting[-1])
    kept = sentence.split()[:limit]
    while len(kept) > 3 and dangles(kept[-1]):
        kept.pop()
    return close_sentence(" ".join(kept))


def split_clauses(sentence: str) -> list[str]:
    """Return the beginnings of a sentence that could stand alone, shortest first."""
    if _SUBORDINATE.match(sentence):
        return []
    cuts = [sentence[: match.start()] for match in _CLAUSE.finditer(sentence)]
    return [cut for cut in cuts if count_spaced_words(cut) >= 4 and not dangles(cut)]


def dangles(text: str) -> bool:
    """Tell whether a text ends with a word that needs another after it."""
    last = split_words(text)[-1:] or ["and"]
    return last[0] in _DANGLING


def extract_keywords(text: str, number: int, first: Iterable[str] = ()) -> list[str]:
    """Return the most frequent meaningful words, those of `first` before all others."""
    lead = list(dict.fromkeys(word for item in first for word in extract_content_words(item)))
    counts = Counter(
        word for word in extract_content_words(text) if len(word) > 3 and not word.isdigit()
    )
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    return list(dict.fromkeys([*lead, *ordered]))[:number]
