"""The check that a text does not go round in circles."""

import itertools
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence

from toolkit.planning.review.issues import ReviewIssue
from toolkit.planning.review.texts.case import TextCase, quote
from toolkit.planning.review.texts.sentences import LIST_MARK, split_sentences
from toolkit.planning.review.texts.word_lists import fold_phrase

_WORD = re.compile(r"\w+")
_RUN_OF_SIGNS = re.compile(r"([^\W\d_])\1{14,}|((?!\s)(?:\w|\W){2,6}?)\2{11,}")
_MIN_WORDS, _MIN_CHARS = 4, 12  # of a sentence that counts as repeated
_GRAM = 8  # words; of scripts without spaces, signs
_MIN_SIZE = 40  # words of a text that is compared with itself
_RUN = 8  # times one word in a row
_MIN_PACKED = 2_000  # bytes of a text that is packed


def check_repetition(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that sentences, lines and runs of words do not come back again and again."""
    if case.is_code:
        return
    limits = case.thresholds
    lawful = case.asks("repeating")
    share, example = _measure_repeated_share(case.sample)
    most = limits.repeated_share_of_verse if lawful else limits.repeated_share
    told = "Do not repeat sentences."
    if share > most:
        message = f"{share:.0%} of the text repeats itself: {quote(example)}."
        yield case.report(message, 0.8, instruction=told)
        return
    run = _find_run(case.sample)
    if run:
        yield case.report(f"The text is stuck at {quote(run)}.", 0.8, instruction=told)
        return
    packed = case.sample.encode()
    if not lawful and len(packed) >= _MIN_PACKED:
        ratio = len(zlib.compress(packed, 1)) / len(packed)
        if ratio < limits.packed_share:
            message = f"The text says little that is new: it packs to {ratio:.0%}."
            yield case.report(message, 0.7, instruction=told)


def _measure_repeated_share(text: str) -> tuple[float, str]:
    """Measure the share of a text that stood in it before, with what is repeated most."""
    sentences = []
    for one in split_sentences(text):
        words = _WORD.findall(fold_phrase(LIST_MARK.sub("", one)))
        key = " ".join(words)
        if len(words) >= _MIN_WORDS or (len(key) >= _MIN_CHARS and not key.isascii()):
            sentences.append(key)
    total = sum(map(len, sentences))
    counts = Counter(sentences)
    # Once more may be meant: a refrain, a closing line. Three times is a pattern.
    repeated = sum(len(key) * (number - 1) for key, number in counts.items() if number > 1)
    most = max(counts, key=lambda key: (counts[key] - 1) * len(key), default="")
    by_sentence = repeated / total if total and counts[most] > 1 else 0.0
    if counts[most] == 2 and len(most) < total * 0.2:
        by_sentence = min(by_sentence, 0.15)
    words = _WORD.findall(fold_phrase(text))
    by_gram, gram = _measure_repeated_grams(words)
    return (by_gram, gram) if by_gram > by_sentence else (by_sentence, most)


def _measure_repeated_grams(words: Sequence[str]) -> tuple[float, str]:
    """Measure the share of runs of words that stood in a text before."""
    if len(words) < _MIN_SIZE:
        return 0.0, ""
    grams = Counter(zip(*(words[i:] for i in range(_GRAM)), strict=False))
    total = grams.total()
    repeated = total - len(grams)
    gram, _ = grams.most_common(1)[0]
    return (repeated / total if total else 0.0), " ".join(gram)


def _find_run(text: str) -> str:
    """Find a word that is said many times in a row, or signs that are."""
    words = _WORD.findall(text.casefold())
    length = 1
    for before, after in itertools.pairwise(words):
        length = length + 1 if before == after and not after.isdigit() else 1
        if length >= _RUN:
            return " ".join([after] * 4)
    match = _RUN_OF_SIGNS.search(text) if re.search(r"[^\W\d_]", text) else None
    found = match.group() if match else ""
    return found if any(map(str.isalpha, found)) else ""
