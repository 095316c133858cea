"""The terms of a text: the stems of its words that carry meaning, and which two texts share."""

import re
from collections.abc import Iterable
from functools import cache

from toolkit.planning.reading.words.tokens import fold_text
from toolkit.planning.review.texts.word_lists import load_function_words

_DENSE = re.compile(r"[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
_ELISION = re.compile(r"^(?:[a-z]{1,2}|quell|dell|all|nell|sull|dall|un)'(?=[^\W\d_]{2})")
_ENDINGS = ("ational", "ations", "ation", "ings", "ing", "ally", "ies", "als", "al", "ed", "es")
_ARABIC_HEAD = re.compile(r"[\u0620-\u064a]{3}")
_ARABIC_ARTICLE = re.compile(r"^(?:و?(?:ال|بال|كال|فال|لل)|و)(?=\w{2})")
_ARABIC_ENDING = re.compile(r"(?<=\w\w)(?:ها|ان|ات|ون|ين|يه|ية|ه|ة|ي)$")
_PREFIX = 5  # letters that two stems share at least


def find_terms(text: str) -> list[str]:
    """Find the stems of meaningful words; pairs of signs for scripts without spaces.

    >>> find_terms("The tides of the sea: 潮汐能")
    ['tid', 'sea', '潮汐', '汐能']
    """
    stems: list[str] = []
    for word in _WORD.findall(fold_text(text)):
        if _DENSE.search(word):
            stems += [word[i : i + 2] for i in range(max(1, len(word) - 1))]
            continue
        bare = _strip_arabic(_ELISION.sub("", word).removesuffix("'s"))
        if bare not in _load_stopwords() and (len(bare) > 1 or bare.isdigit()):
            stems.append(stem(bare))
    return stems


def _strip_arabic(word: str) -> str:
    """Strip the article, what is written with it, and the commonest ending off an Arabic word."""
    if word.isascii() or not _ARABIC_HEAD.match(word):
        return word
    head = _ARABIC_ARTICLE.sub("", word)
    return _ARABIC_ENDING.sub("", head)


@cache
def _load_stopwords() -> frozenset[str]:
    return frozenset(map(fold_text, load_function_words()))


def stem(word: str) -> str:
    """Reduce a word to a crude common form, so that `tides` and `tidal` count as one."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word[:-1] if word.endswith(("s", "e", "y", "n")) and len(word) > 3 else word


class TermIndex:
    """The terms of a text, to look up those of another that are alike.

    >>> "turbin" in TermIndex(["turbines"]), "beer" in TermIndex(["bee"])
    (True, False)
    """

    def __init__(self, terms: Iterable[str]) -> None:
        self._terms = frozenset(terms)
        self._by_prefix: dict[str, list[str]] = {}
        for term in self._terms:
            self._by_prefix.setdefault(term[:_PREFIX], []).append(term)

    def __len__(self) -> int:
        return len(self._terms)

    def __contains__(self, term: object) -> bool:
        """Tell whether a term is there, or one that only ends otherwise."""
        if not isinstance(term, str) or term in self._terms:
            return term in self._terms
        if len(term) < _PREFIX:
            return False
        alike = self._by_prefix.get(term[:_PREFIX], [])
        return any(_are_alike(term, other) for other in alike)


def _are_alike(one: str, other: str) -> bool:
    common = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        common += 1
    return common >= 0.6 * max(len(one), len(other))


def measure_overlap(terms: Iterable[str], others: TermIndex) -> float:
    """Measure the share of terms that are among others."""
    every = list(terms)
    return sum(term in others for term in every) / len(every) if every else 0.0
