"""Ways to count the parts of a text: a number of parts is right if any of the ways gives it."""

import re
from collections.abc import Callable, Mapping

from toolkit.media.text_parts import (
    count_characters,
    count_words,
    is_finished,
    read_json,
    split_items,
    split_lines,
    split_paragraphs,
    split_sentences,
)

_SHORT_LINE = 60  # characters: a heading, a greeting or a name, and no paragraph
_TABLE_RULE = re.compile(r"^\s*\|[\s:|-]+\|\s*$", re.M)
_SEPARATOR = re.compile(r"[,;、，；،؛/|]")


def _count_words(text: str) -> set[int]:
    """Count the words; the set is empty for scripts without word breaks."""
    words = count_words(text)
    return set() if words is None else {words}


def _count_characters(text: str) -> set[int]:
    return {len(text.strip()), count_characters(text)}


def _count_sentences(text: str) -> set[int]:
    """Count the sentences; a line without a stop at its end may be a heading or a name."""
    sentences = split_sentences(text)
    finished = sum(map(is_finished, sentences)) or len(sentences)
    return {len(sentences), finished, len(split_sentences(text, has_ordinals=False))}


def _count_paragraphs(text: str) -> set[int]:
    blocks = split_paragraphs(text)
    long = sum(len(block) > _SHORT_LINE for block in blocks)
    lines = sum(len(line) > _SHORT_LINE for line in split_lines(text))
    return {len(blocks), long or len(blocks), *([lines] if len(blocks) == 1 and lines else [])}


def _count_lines(text: str) -> set[int]:
    """Count the lines, with and without a title that stands apart."""
    lines, blocks = split_lines(text), text.strip().split("\n\n")
    has_title = len(blocks) > 1 and "\n" not in blocks[0].strip()
    return {len(lines), len(lines) - has_title}


def _count_items(text: str) -> set[int]:
    """Count the items of a list by its marks; without any by its lines, paragraphs or commas."""
    if (data := _count_data(text)) is not None:
        return {data}
    marked, lines = len(split_items(text)), split_lines(text)
    blocks = split_paragraphs(text)
    rows = [line for line in lines if line.lstrip().startswith("|")]
    if marked > 1:
        return {marked}
    if len(rows) > 1:
        return {len(rows) - bool(_TABLE_RULE.search(text))}  # the head is above the rule
    if len(lines) > 1:
        heads = int(not is_finished(lines[0]))
        counts = {len(lines), len(blocks), len(lines) - heads, len(blocks) - heads}
        return {*counts, len(lines) // 2} if len(lines) % 2 == 0 else {*counts}
    return {len(split_sentences(text)), len(_SEPARATOR.split(text))}


def _count_data(text: str) -> int | None:
    """Count the items of JSON that is a list or has a single list; return None for other text."""
    try:
        value = read_json(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict):
        lists = [member for member in value.values() if isinstance(member, list)]
        value = lists[0] if len(lists) == 1 else None
    return len(value) if isinstance(value, list) else None


# By the fields of `Expect`: each counter returns all numbers that count as right.
COUNTERS: Mapping[str, Callable[[str], set[int]]] = {
    "words": _count_words,
    "characters": _count_characters,
    "sentences": _count_sentences,
    "paragraphs": _count_paragraphs,
    "lines": _count_lines,
    "items": _count_items,
}


def measure_text(text: str) -> dict[str, int]:
    """Count the words, characters, sentences, lines and paragraphs of a text.

    >>> measure_text("Tides turn. So do we.\\n\\nTwice a day.")
    {'words': 8, 'characters': 35, 'sentences': 3, 'lines': 2, 'paragraphs': 2}
    """
    words = count_words(text)
    return {
        **({} if words is None else {"words": words}),
        "characters": len(text.strip()),
        "sentences": len(split_sentences(text)),
        "lines": len(split_lines(text)),
        "paragraphs": len(split_paragraphs(text)),
    }
