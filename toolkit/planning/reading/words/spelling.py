"""Misspelled words of an objective, mended by the words of its language."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from .lexicon import load_lexicon
from .tokens import WITHOUT_SPACES, Token

CAPITALIZING = frozenset({"de"})  # nouns, so that a capital tells no name
MIN_LETTERS = 5  # of a word that is mended
MIN_LETTERS_TO_GUESS = 6  # of one with a letter that is missing or another: shorter ones are words
MIN_LETTERS_FOR_TWO = 9  # of a word that is mended in two places
MENDED = (
    "act.",
    "thing.",
    "unit.",
    "unavailable.",
    "make",
    "function_word",
    "creative",
    "negation.",
    "number",
    "filler",
)
# Keys that stand side by side on the usual keyboards; letters that sound alike.
NEIGHBOURS = ("qwertyuiop", "asdfghjkl", "zxcvbnm", "azerty", "qsdfghjklm", "wxcvbn", "qwertz")
SLANTS = ("qaz", "wsx", "edc", "rfv", "tgb", "yhn", "ujm", "ik", "ol", "wa", "es", "rd", "tf",
          "yg", "uh", "ij", "ok", "pl", "sz", "dx", "fc", "gv", "hb", "jn", "km")  # fmt: skip
SOUNDS = ("aei", "ou", "iy", "csz", "ckq", "vw", "bp", "dt", "mn", "gj", "fv", "bv")


def mend_tokens(
    tokens: Sequence[Token], code: str, known: Container[str] = frozenset()
) -> list[Token]:
    """Give misspelled words of an objective the keys of what they mean; names stay as they are.

    Args:
        tokens: of the objective; their texts and places stay.
        code: of its language.
        known: words that are right though the lexicon does not have them.
    """
    mended = []
    for i, token in enumerate(tokens):
        is_name = i > 0 and tokens[i - 1].is_word and token.text[0].isupper()
        is_left = (is_name and code not in CAPITALIZING) or token.key in known
        is_left = is_left or bool(load_lexicon(code).find_entries([token], 0))
        key = None if is_left else mend_word(token.key, code)
        mended.append(replace(token, key=key) if key else token)
    return mended


def mend_word(key: str, code: str) -> str | None:
    """The word of a lexicon that a misspelled one most likely means; none where nothing is near.

    A letter may be missing, be one too many, or stand in its neighbour's place; another may only
    be one that lies or sounds nearby. The first letter is right, and none at the end
    is another, as that would be another form or word. Longer words may be wrong in two
    places.

    Args:
        key: of a word that is not in the lexicon, folded.
        code: of the language.

    Example:
        >>> mend_word("pictrue", "en"), mend_word("stork", "en")
        ('picture', None)
    """
    if len(key) < MIN_LETTERS or code in WITHOUT_SPACES or not key.isalpha():
        return None
    if key in list_known_words(code) or load_lexicon(code).is_known(key):
        return None
    words = index_words(code)
    cuts = cut_letters(key)
    near = [word for word in {word for cut in cuts for word in words.get(cut, ())}
            if is_slip(key, word)]  # fmt: skip
    if not near and len(key) >= MIN_LETTERS_FOR_TWO:
        near = [word for word in index_long_words(code).get(key[:2], ())
                if abs(len(word) - len(key)) <= 2 and len({*word} ^ {*key}) <= 2
                and count_edits(key, word) <= 2]  # fmt: skip
    return min(near, key=lambda word: (abs(len(word) - len(key)), word), default=None)


@lru_cache(maxsize=16)
def list_known_words(code: str) -> frozenset[str]:
    """List the words of a lexicon, also those that it has only within phrases."""
    return frozenset(word for key in load_lexicon(code).meanings for word in key.split())


def list_mendable(code: str) -> Iterator[str]:
    """List the words of a lexicon that others are mended to."""
    for key, meanings in load_lexicon(code).meanings.items():
        is_word = len(key) >= MIN_LETTERS - 1 and key.isalpha()
        if is_word and any(category.startswith(MENDED) for category, _ in meanings):
            yield key


@lru_cache(maxsize=16)
def index_words(code: str) -> Mapping[str, Sequence[str]]:
    """The words that are mended to, by themselves and by themselves without one letter."""
    index: dict[str, list[str]] = {}
    for key in list_mendable(code):
        for cut in cut_letters(key):
            index.setdefault(cut, []).append(key)
    return index


@lru_cache(maxsize=16)
def index_long_words(code: str) -> Mapping[str, Sequence[str]]:
    """The longer words that are mended to, by their first letters."""
    index: dict[str, list[str]] = {}
    for key in list_mendable(code):
        if len(key) >= MIN_LETTERS_FOR_TWO:
            index.setdefault(key[:2], []).append(key)
    return index


def cut_letters(word: str) -> set[str]:
    """A word as it is and without any one letter but the first."""
    return {word, *(word[:i] + word[i + 1 :] for i in range(1, len(word)))}


def is_slip(key: str, word: str) -> bool:
    """Tell whether one slip of the hand or ear leads from a word to what is written."""
    if len(key) < len(word) and len(key) < MIN_LETTERS_TO_GUESS:
        return False
    if len(key) != len(word):
        # With letters after its end it is another form of the word.
        return count_edits(key, word) == 1 and not key.startswith(word)
    places = [i for i in range(len(key)) if key[i] != word[i]]
    if len(places) == 1:
        last = len(key) - 1
        return (
            len(key) >= MIN_LETTERS_TO_GUESS
            and places[0] < last
            and is_near(key[places[0]], word[places[0]])
        )
    i = places[0]
    return places == [i, i + 1] and key[i] == word[i + 1] and key[i + 1] == word[i]


@lru_cache(maxsize=1024)
def is_near(left: str, right: str) -> bool:
    """Tell whether two letters lie side by side on a keyboard, or sound alike."""
    rows = any(left + right in row or right + left in row for row in NEIGHBOURS)
    return rows or any(left in letters and right in letters for letters in (*SLANTS, *SOUNDS))


def count_edits(left: str, right: str) -> int:
    """Count the letters to insert, drop, change or swap that make one word the other."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before, last, row = row, before, [i]
        for j, b in enumerate(right, 1):
            cost = min(row[j - 1] + 1, before[j] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]
