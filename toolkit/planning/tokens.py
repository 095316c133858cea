"""Tokens of an objective: splitting, comparing and counting words; for planner and reviewer."""

import re
from dataclasses import dataclass

from toolkit.planning import lexicon

_TOKEN = re.compile(r"\w+(?:['’]\w+)?")


@dataclass(frozen=True, slots=True)
class WordToken:
    """A word of the objective and its position."""

    word: str
    start: int
    end: int


def tokenize(text: str) -> list[WordToken]:
    """Split a text into words.

    >>> [token.word for token in tokenize("A 20-word teaser")]
    ['a', '20', 'word', 'teaser']
    """
    return [WordToken(m.group().lower(), m.start(), m.end()) for m in _TOKEN.finditer(text)]


def singularize(word: str) -> str:
    """Strip a word's plural ending, crudely, so that both sides of a match lose the same.

    >>> singularize("stories"), singularize("summaries"), singularize("cards"), singularize("glass")
    ('story', 'summary', 'card', 'glass')
    """
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def make_phrase_key(phrase: str) -> tuple[str, ...]:
    """Return the key by which a phrase is looked up."""
    return tuple(singularize(token.word) for token in tokenize(phrase))


def find_word_count(text: str) -> int | None:
    """Return the number of words that an instruction asks for.

    >>> find_word_count("A summary of about 60 words")
    60
    """
    match = lexicon.WORD_COUNT.search(text)
    return int(match.group(1)) if match else None
