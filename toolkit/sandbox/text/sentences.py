"""Words and sentences: splitting, ranking by frequency and place, and shortening at clauses."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import chain

from toolkit.sandbox.text.languages import ENGLISH, load_languages

_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|st|dr|mr|mrs|ms)\.$", re.I)
_SENTENCE_END = re.compile(
    r"(?<=[.!?؟।])[\"')\]”’]*\s+(?=[\"'(\[“‘]?(?![a-zà-ÿа-я])\w)|(?<=[。！？])(?=.)"
)
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_CJK = "\u3040-\u30ff\u3400-\u9fff"
_COUNTED_WORD = re.compile(rf"[{_CJK}]|[^\s{_CJK}\u3000-\u303f\uff00-\uffef]+")
_HEADING = re.compile(r"^\s*(?:={2,}.*={2,}|#{1,6}\s.*)\s*$", re.M)
_BLOCK_END = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*•#]|\d+[.)]))")
_BULLET = re.compile(r"^\s*(?:[-*•#]+|\d+[.)])\s*")
_CLAUSE = re.compile(
    r",\s|;\s|:\s|\s[–—-]\s|\s\("
    r"|\s(?:because|although|while|whereas|which|where|when|until|before|after|as)\s"
)
# A sentence that begins with these words is not complete before its second clause.
_SUBORDINATE = re.compile(r"(?:because|although|while|when|if|as|since|after|before)\s", re.I)
_SENTENCE_CLOSERS = (".", "!", "?", "。", "！", "？", "؟", "।")
# Stopwords that may end a clause.
_CLOSING_WORDS = frozenset({"it", "us", "them", "now", "again", "today", "together", "well"})


@cache
def load_stopwords() -> frozenset[str]:
    """Load the English words that carry no meaning."""
    return frozenset(load_languages()[ENGLISH]["stopwords"].split())


def split_words(text: str) -> list[str]:
    """Split a text into words, in lower case."""
    return [word.lower() for word in _WORD.findall(text)]


def count_words(text: str) -> int:
    """Count words by spaces, and characters of scripts without spaces.

    >>> count_words("潮汐很重要。"), count_words("Tides turn.")
    (5, 2)
    """
    return len(text.split()) if text.isascii() else len(_COUNTED_WORD.findall(text))


def extract_content_words(text: str) -> list[str]:
    """Extract the words that carry meaning."""
    stopwords = load_stopwords()
    return [word for word in split_words(text) if word not in stopwords and len(word) > 1]


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


@lru_cache(maxsize=2048)  # the sentences of an article are ranked again for each prompt about it
def list_stems(text: str) -> tuple[str, ...]:
    """List the stems of the words that carry meaning, in their order."""
    return tuple(map(stem_word, extract_content_words(text)))


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences; a line break between blocks also ends one."""
    sentences: list[str] = []
    for block in _BLOCK_END.split(_HEADING.sub("\n\n", text)):
        flat = " ".join(_BULLET.sub("", block).split())
        start = 0
        for match in _SENTENCE_END.finditer(flat):
            if not _ABBREVIATION.search(flat[start : match.start()]):
                sentences.append(flat[start : match.end()].strip())
                start = match.end()
        sentences.append(flat[start:].strip())
    return [sentence for sentence in sentences if sentence]


def rank_sentences(sentences: Sequence[str], topic: str) -> list[int]:
    """Rank sentences by frequent words, early place and words of the topic; return indices."""
    stems = list(map(list_stems, sentences))
    frequency = Counter(chain.from_iterable(stems))
    topic_stems = extract_stems(topic)
    scores: list[tuple[float, int]] = []
    for place, (sentence, own_stems) in enumerate(zip(sentences, stems, strict=True)):
        weight = sum(map(frequency.__getitem__, own_stems)) / (len(own_stems) + 4)
        position = 1.6 if place == 0 else 1.0 / (1 + place / 12)
        about = 1.0 + len(topic_stems & set(own_stems)) / max(1, len(topic_stems))
        readable = 1.0 if 6 <= count_words(sentence) <= 30 else 0.6
        scores.append((-weight * position * about * readable, place))
    return [place for score, place in sorted(scores) if score]


def select_best(sentences: Sequence[str], number: int, topic: str) -> list[str]:
    """Select the best sentences, in the order of the text."""
    return [sentences[place] for place in sorted(rank_sentences(sentences, topic)[:number])]


def capitalize_first(text: str) -> str:
    """Return a text with a capital first letter."""
    return text[:1].upper() + text[1:]


def close_sentence(text: str) -> str:
    """Add a full stop to a text, unless it ends with the punctuation of a sentence."""
    text = text.rstrip(" ,;:–—-(")
    return text if text.endswith(_SENTENCE_CLOSERS) else text + "."


def shorten_sentence(sentence: str, limit: int) -> str:
    """Shorten a sentence to at most `limit` words, at the end of a clause if possible."""
    if count_words(sentence) <= limit:
        return close_sentence(sentence)
    ends = [] if _SUBORDINATE.match(sentence) else list(_CLAUSE.finditer(sentence))
    for clause in (sentence[: end.start()] for end in reversed(ends)):
        if 4 <= count_words(clause) <= limit and not _is_dangling(clause):
            return close_sentence(clause)
    words = sentence.split()[:limit]
    while len(words) > 3 and _is_dangling(words[-1]):
        words.pop()
    return close_sentence(" ".join(words))


def _is_dangling(text: str) -> bool:
    """Return True if a text ends with a word that needs another after it."""
    words = split_words(text)
    return not words or words[-1] in load_stopwords() - _CLOSING_WORDS


def extract_keywords(text: str, number: int) -> list[str]:
    """Return the most frequent words that carry meaning."""
    words = [word for word in extract_content_words(text) if len(word) > 3 and not word.isdigit()]
    return [word for word, _ in Counter(words).most_common(number)]
