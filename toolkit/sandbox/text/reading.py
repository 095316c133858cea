"""What the simulated model reads from a text: labels, mood, names, numbers and dates."""

import re
import tomllib
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

from toolkit.sandbox.text.sentences import extract_stems, split_sentences, split_words, stem_word

_GOOD = frozenset(("positive", "good", "happy", "satisfied", "pleased", "praise", "like", "yes"))
_BAD = frozenset(
    ("negative", "bad", "unhappy", "sad", "angry", "annoyed", "dissatisfied", "complaint", "no")
)
_BETWEEN = frozenset(("neutral", "mixed", "unclear"))
_NEGATIONS = frozenset(("not", "no", "never", "isn't", "wasn't", "don't", "didn't", "hardly"))
_NEGATION_REACH = 2  # words
_NUMBER = re.compile(r"(?<![\w.])\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<![\w.])\d+(?:\.\d+)?")
_MONTHS = "January February March April May June July August September October November December"
_MONTH = "|".join(f"{month[:3]}(?:{month[3:]})?" for month in _MONTHS.split())
_DATE = re.compile(
    rf"\b(?:\d{{4}}-\d\d-\d\d|\d{{1,2}}(?:st|nd|rd|th)? (?:{_MONTH})\.?(?: \d{{4}})?"
    rf"|(?:{_MONTH})\.? \d{{1,2}}(?:st|nd|rd|th)?(?:, \d{{4}})?)\b"
)
_EMAIL = re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}")
_ADDRESS = re.compile(r"https?://[^\s<>\"')]+[^\s<>\"').,;]")
_PRICE = re.compile(
    r"[$€£]\s?\d[\d,.]{0,20}\d|[$€£]\s?\d|\b\d[\d,.]{0,20}\s?(?:USD|EUR|GBP|CHF|dollars|euros)"
)
_CAPITALIZED = re.compile(r"\b[A-Z][^\W\d_]+(?:[ -][A-Z][^\W\d_]+)*")
_PATTERNS = (
    (re.compile(r"date|day|when", re.I), _DATE),
    (re.compile(r"e-?mail", re.I), _EMAIL),
    (re.compile(r"url|link|website", re.I), _ADDRESS),
    (re.compile(r"price|amount|cost|total|fee", re.I), _PRICE),
    (re.compile(r"number|figure|quantit", re.I), _NUMBER),
)
_DATE_FORMS = ("%Y-%m-%d", "%d %B %Y", "%d %b %Y", "%B %d, %Y", "%b %d, %Y")
# Words that begin a sentence with a capital letter and are no names.
_NO_NAMES = frozenset(
    "i the a an it he she they we you this that these those there here and but or so if when where "
    "who what why how in on at to for from with by of as my our your his her its monday tuesday "
    f"wednesday thursday friday saturday sunday please extract {_MONTHS.lower()}".split()
)


@cache
def load_knowledge() -> dict[str, Any]:
    """Load what the model knows beside its encyclopedia: lists, words of labels, and so on."""
    return tomllib.loads(files(__package__).joinpath("answers.toml").read_text(encoding="utf-8"))


def measure_sentiment(text: str) -> int:
    """Measure the mood of a text: above 0 if it is friendly, below 0 if it is not.

    >>> measure_sentiment("I love this phone") > 0 > measure_sentiment("He was not friendly")
    True
    """
    words = [word.replace("’", "'") for word in split_words(text)]
    known = load_knowledge()["sentiment"]
    total = 0
    for place, word in enumerate(words):
        value = (word in known["positive"]) - (word in known["negative"])
        negated = _NEGATIONS.intersection(words[max(0, place - _NEGATION_REACH) : place])
        total += -value if negated else value
    return total


def choose_label(labels: Sequence[str], text: str) -> str | None:
    """Choose the label that fits a text; None if its words speak for none of them.

    >>> choose_label(["shipping", "billing"], "I was charged twice, please refund me")
    'billing'
    >>> choose_label(["Negative", "Positive", "Neutral"], "It is a table")
    'Neutral'
    """
    mood = measure_sentiment(text)
    by_mood = _GOOD if mood > 0 else _BAD if mood < 0 else _BETWEEN
    named = [label for label in labels if label.casefold() in by_mood]
    if named and any(label.casefold() in _GOOD | _BAD for label in labels):
        return named[0]
    words = frozenset(map(stem_word, split_words(text)))
    scores = [_score_label(label, words, text) for label in labels]
    best = max(scores, default=0)
    return labels[scores.index(best)] if best else None


def _score_label(label: str, words: frozenset[str], text: str) -> int:
    known = load_knowledge()["labels"]
    parts = extract_stems(label.replace("_", " "))
    score = 2 * len(parts & words)
    for name, marks in known.items():
        if stem_word(name) in parts:
            score += len(words & set(map(stem_word, marks)))
            score += name == "question" and text.rstrip().endswith("?")
    return score


def is_about(label: str, text: str) -> bool:
    """Return True if a text is what a yes-or-no field asks, such as `urgent`.

    >>> is_about("is_urgent", "Please call immediately"), is_about("urgent", "Lovely tea")
    (True, False)
    """
    name = label.replace("_", " ").casefold()
    mood = measure_sentiment(text)
    for words, holds in ((_BAD, mood < 0), (_GOOD | {"recommend"}, mood > 0)):
        if words & set(name.split()):
            return holds
    return choose_label([name], text) is not None


def knows_label(label: str) -> bool:
    """Return True if the model knows words that speak for a label."""
    parts = set(label.replace("_", " ").casefold().split())
    return bool(parts & (load_knowledge()["labels"].keys() | _GOOD | _BAD | {"recommend"}))


def find_entities(kind: str, text: str) -> list[str]:
    """Find what a text has of a kind: dates, numbers, prices, addresses, or names.

    >>> find_entities("names", "Anna met Boris in Rome on 3 May 2027.")
    ['Anna', 'Boris', 'Rome']
    >>> find_entities("the date", "Anna met Boris in Rome on 3 May 2027.")
    ['3 May 2027']
    """
    for asked, pattern in _PATTERNS:
        if asked.search(kind):
            return list(dict.fromkeys(pattern.findall(text)))
    found = []
    for sentence in split_sentences(text):
        for match in _CAPITALIZED.finditer(sentence):
            words = match.group().split()
            while words and words[0].casefold() in _NO_NAMES:
                words.pop(0)
            if words:
                found.append(" ".join(words))
    return list(dict.fromkeys(found))


def read_number(text: str) -> float:
    """Read the number in a text such as `$1,250.50`."""
    return float(re.sub(r"[^\d.]", "", text).strip(".") or 0)


def read_date(text: str) -> str | None:
    """Read a date with a year as ISO 8601; None if the text is none."""
    plain = re.sub(r"(\d)(?:st|nd|rd|th)\b", r"\1", text).replace(".", "")
    for form in _DATE_FORMS:
        try:
            return datetime.strptime(plain, form).date().isoformat()  # noqa: DTZ007 - a day alone
        except ValueError:
            continue
    return None
