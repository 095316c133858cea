"""The words of texts, compared: repetitions in a text, and terms that two texts share."""

import itertools
import re
from collections import Counter
from collections.abc import Sequence

from toolkit.media.text_parts import LIST_MARK, fold, split_sentences

_WORD = re.compile(r"\w+")
_DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_GRAM, _LONG_GRAM = 4, 8  # words; signs in scripts without spaces
_RUN_OF_SIGNS = re.compile(r"([^\W\d_])\1{14,}")
_MIN_WORDS, _MIN_CHARS = 4, 12  # of a sentence that counts as repeated
_MIN_TERM, _TERM_STEM = 4, 5  # letters of a term, and of the beginning that is compared
_RUN = 8  # times one word in a row


def measure_repeated_share(text: str) -> tuple[float, str]:
    """Measure the share of a text that repeats earlier parts of it, with the most repeated part."""
    sentences = []
    for sentence in split_sentences(text):
        words = _WORD.findall(fold(LIST_MARK.sub("", sentence)))
        key = " ".join(words)
        is_dense = len(key) >= _MIN_CHARS and _DENSE.search(key)
        if len(words) >= _MIN_WORDS or is_dense:
            sentences.append(key)
    counts = Counter(sentences)
    # Once more may be meant, as in a refrain or a closing line. Three times is a pattern.
    repeated = sum(len(key) * (number - 1) for key, number in counts.items() if number > 2)
    repeated = repeated or sum(len(key) for key, number in counts.items() if number > 1) // 2
    total = sum(map(len, sentences))
    example = max(counts, key=lambda key: (counts[key] - 1) * len(key), default="")
    grams = Counter(list_grams(_WORD.findall(fold(text)), _LONG_GRAM))
    by_gram = 1 - len(grams) / grams.total() if len(grams) > _LONG_GRAM else 0.0
    return max(repeated / total if total else 0.0, by_gram), example


def find_run(text: str) -> str:
    """Find a word or a letter that is repeated many times in a row; return "" if there is none."""
    length = 1
    for before, after in itertools.pairwise(_WORD.findall(text.casefold())):
        length = length + 1 if before == after and not after.isdigit() else 1
        if length >= _RUN:
            return " ".join([after] * 4)
    match = _RUN_OF_SIGNS.search(text)
    return match.group() if match else ""


def list_grams(words: Sequence[str], size: int = _GRAM) -> list[tuple[str, ...]]:
    """List all runs of `size` words, one from each word."""
    return [tuple(words[i : i + size]) for i in range(len(words) - size + 1)]


def split_signs(text: str) -> list[str]:
    """Split a text into words, and words of scripts without spaces into their signs."""
    words = _WORD.findall(text)
    return [part for word in words for part in (word if _DENSE.match(word) else (word,))]


def measure_word_errors(expected: Sequence[str], heard: Sequence[str]) -> float:
    """Measure the word error rate: words changed, left out or added, for each expected word.

    >>> measure_word_errors("the tide turns twice".split(), "the ties turn twice".split())
    0.5
    """
    row = list(range(len(heard) + 1))
    for place, word in enumerate(expected, start=1):
        above, row = row, [place]
        for n, other in enumerate(heard):
            row.append(min(above[n] + (word != other), above[n + 1] + 1, row[n] + 1))
    return row[-1] / max(1, len(expected))


def find_terms(text: str) -> set[str]:
    """Find the beginnings of a text's longer words; pairs of signs in scripts without spaces.

    >>> sorted(find_terms("The tides: 潮汐能"))
    ['tides', '汐能', '潮汐']
    """
    words = _WORD.findall(fold(text))
    dense = [word for word in words if _DENSE.match(word)]
    pairs = {word[i : i + 2] for word in dense for i in range(len(word) - 1)}
    return pairs | {
        word[:_TERM_STEM] for word in words if len(word) >= _MIN_TERM and word not in dense
    }
