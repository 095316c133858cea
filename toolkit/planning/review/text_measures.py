"""Measures of texts: their words, and what they are about."""

import re
import unicodedata
from collections import Counter

from toolkit.planning import lexicon

_DENSE = re.compile(r"[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_ENGLISH = frozenset(
    lexicon.split_phrases(
        "the, of, and, to, in, is, it, that, for, as, with, are, on, by, from, this, be, at, or, "
        "an, was, its, which, has, have, not, but, they, their, can, a"
    )
)
_STOPWORDS = (
    _ENGLISH
    | lexicon.FILLER_WORDS
    | lexicon.ABOUT_WORDS
    | lexicon.WITH_WORDS
    | lexicon.AS_WORDS
    | lexicon.QUESTION_WORDS
    | {"word", "words"}
)
_ENDINGS = ("ational", "ations", "ation", "ings", "ing", "ally", "ies", "als", "al", "ed", "es")


def count_words(text: str) -> int | None:
    """Count the words of a text; none for scripts without word breaks.

    >>> count_words("High water, twice a day")
    5
    """
    dense = len(_DENSE.findall(text))
    return None if dense * 3 > len(text) else len(text.split())


def stem(word: str) -> str:
    """Reduce a word to a crude common form, so that `tides` and `tidal` count as one."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word[:-1] if word.endswith(("s", "e", "y")) and len(word) > 3 else word


def find_content_stems(text: str) -> list[str]:
    """Find the stems of meaningful words; pairs of characters for scripts without spaces."""
    folded = unicodedata.normalize("NFKD", text.casefold())
    folded = "".join(char for char in folded if not unicodedata.combining(char))
    folded = unicodedata.normalize("NFC", folded)
    stems: list[str] = []
    for word in _WORD.findall(folded):
        if _DENSE.search(word):
            stems += [word[i : i + 2] for i in range(max(1, len(word) - 1))]
        elif word not in _STOPWORDS and (len(word) > 1 or word.isdigit()):
            stems.append(stem(word.removesuffix("'s").removesuffix("’s")))
    return stems


def measure_topic_share(topic: str, text: str) -> float | None:
    """Measure the share of a topic's words that a text has; none if they cannot be compared.

    They cannot where the topic has no words that carry meaning, or the text is in another
    language or script than the topic. Words count in any form.

    >>> measure_topic_share("tidal power", "Tides can power a town.")
    1.0
    >>> measure_topic_share("tidal power", "Bees dance.")
    0.0
    """
    wanted = list(dict.fromkeys(find_content_stems(topic)))
    if not wanted or _is_other_language(topic, text):
        return None
    there = set(find_content_stems(text))
    return sum(any(_are_alike(word, other) for other in there) for word in wanted) / len(wanted)


def shares_terms(text: str, source: str) -> bool:
    """Tell whether a text is on its source's topic: it has some of its most frequent words."""
    frequent = {word for word, _ in Counter(find_content_stems(source)).most_common(40)}
    return len(frequent & set(find_content_stems(text))) >= 3


def _are_alike(one: str, other: str) -> bool:
    if one == other:
        return True
    common = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        common += 1
    return common >= 5 and common >= 0.6 * max(len(one), len(other))


def _is_other_language(topic: str, text: str) -> bool:
    if _find_script(topic) != _find_script(text):
        return True
    words = _WORD.findall(text.lower())
    if len(words) < 15 or not topic.isascii():
        return False
    return sum(word in _ENGLISH for word in words) / len(words) < 0.06


def _find_script(text: str) -> str:
    """Find the script of most of a text's letters, by the first word of their Unicode names."""
    letters = filter(str.isalpha, text[:2000])
    names = Counter(unicodedata.name(char, "?").split(" ")[0] for char in letters)
    script = max(names, key=lambda name: names[name], default="")
    return "CJK" if script in {"HIRAGANA", "KATAKANA", "HANGUL"} else script
