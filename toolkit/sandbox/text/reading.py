"""Reading of a text by the simulated model: labels, moods, names, numbers and dates."""

import re
import tomllib
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

from toolkit.sandbox.text.sentences import extract_stems, split_sentences, split_words, stem_word

_NEGATIONS = frozenset(("not", "no", "never", "isn't", "wasn't", "don't", "didn't"))
_NEGATION_REACH = 2  # words
_UNDECIDED = ("neutral", "mixed", "unclear", "other")
_CAPITALIZED = re.compile(r"\b[A-Z][^\W\d_]+(?:[ -][A-Z][^\W\d_]+)*")
_DATE_FORMS = ("%Y-%m-%d", "%d %B %Y", "%d %b %Y", "%B %d, %Y", "%b %d, %Y")


@cache
def load_knowledge() -> dict[str, Any]:
    """Load the model's knowledge outside its encyclopedia: texts, lists, words of labels."""
    return tomllib.loads(files(__package__).joinpath("answers.toml").read_text(encoding="utf-8"))


def choose_label(labels: Sequence[str], text: str) -> str | None:
    """Choose the label that fits a text, or None if its words speak for none of them.

    >>> choose_label(["shipping", "billing"], "I was charged twice, please refund me")
    'billing'
    >>> choose_label(["Positive", "Negative", "Neutral"], "He was not friendly")
    'Negative'
    """
    scores = [_score_label(label, text) for label in labels]
    best = max(scores, default=0)
    if best > 0:
        return labels[scores.index(best)]
    return next((label for label in labels if label.casefold() in _UNDECIDED), None)


def is_about(label: str, text: str) -> bool | None:
    """Check whether a yes-or-no field fits a text; returns None if the field is no known label."""
    return _score_label(label, text) > 0 if _find_rows(label) else None


def _find_rows(label: str) -> list[dict[str, str]]:
    names = extract_stems(label.replace("_", " "))
    rows = load_knowledge()["labels"].values()
    return [row for row in rows if names & extract_stems(row["names"])]


def _score_label(label: str, text: str) -> int:
    words = [stem_word(word.replace("’", "'")) for word in split_words(text)]
    score = 2 * len(extract_stems(label.replace("_", " ")) & set(words))
    for row in _find_rows(label):
        score += _weigh(words, row["words"])
        if "against" in row:
            score -= _weigh(words, load_knowledge()["labels"][row["against"]]["words"])
    return score


def _weigh(words: Sequence[str], marks: str) -> int:
    """Count the words that are in `marks`; a negated word counts as its opposite."""
    stems = set(map(stem_word, marks.split()))
    weight = 0
    for place, word in enumerate(words):
        before = words[max(0, place - _NEGATION_REACH) : place]
        if word in stems:
            weight += 1 if _NEGATIONS.isdisjoint(before) else -1
    return weight


def find_entities(kind: str, text: str) -> list[str]:
    """Find the entities of a kind in a text: dates, numbers, prices, addresses, or names.

    >>> find_entities("names", "Anna met Boris in Rome on 3 May 2027.")
    ['Anna', 'Boris', 'Rome']
    >>> find_entities("the date", "Anna met Boris in Rome on 3 May 2027.")
    ['3 May 2027']
    """
    knowledge = load_knowledge()
    for row in knowledge["entities"]:
        if re.search(row["asked"], kind, re.I):
            return list(dict.fromkeys(re.findall(row["pattern"], text, re.X)))
    no_names = knowledge["no_names"].split()
    names = []
    for sentence in split_sentences(text):
        for match in _CAPITALIZED.finditer(sentence):
            words = match.group().split()
            while words and words[0].casefold() in no_names:
                words.pop(0)
            names.append(" ".join(words))
    return [name for name in dict.fromkeys(names) if name]


def read_date(text: str) -> str | None:
    """Read a date with a year as ISO 8601, or None if the text is no such date."""
    plain = re.sub(r"(\d)(?:st|nd|rd|th)\b", r"\1", text).replace(".", "")
    for form in _DATE_FORMS:
        try:
            return datetime.strptime(plain, form).date().isoformat()  # noqa: DTZ007 - a day alone
        except ValueError:
            continue
    return None
