"""Checks of how much a text has: words, characters, sentences, paragraphs, lines, items."""

import re
from collections.abc import Iterator

from toolkit.planning.review.issues import ReviewIssue
from toolkit.planning.review.speaking_time import estimate_speaking_time
from toolkit.planning.review.texts import sentences as parts
from toolkit.planning.review.texts.case import TextCase
from toolkit.planning.review.texts.demands import Quantity
from toolkit.planning.review.texts.word_lists import compile_phrases, fold_phrase

_SIGN_OFF = re.compile(r"\n\s*\n[^\n]{0,40},\n(?:[^\n]{1,60}\n?){1,3}\s*$")
MAX_SPOKEN_S = 900  # longer ones are of what is told
_SMALL_SLACK = 3  # words that are never too many or too few
_SOURCE_LINES = 40  # at the end of a text, that may list its sources
_LEAST_OF_LIMIT = 0.25  # of the characters that may be used, so many are
_DENSE_WORD = 1.7  # characters of a word, in scripts without spaces


def check_words(case: TextCase) -> Iterator[ReviewIssue]:
    """Check the number of words."""
    asked = case.find_quantity("words")
    if asked is None or not case.text.strip():
        return
    text = _cut_sources(case.text)
    has: float | None = parts.count_words(text)
    if has is None:
        has = parts.count_characters(text) / _DENSE_WORD
    yield from _compare(case, asked, has, _SMALL_SLACK)


def check_characters(case: TextCase) -> Iterator[ReviewIssue]:
    """Check the number of characters: one that is named is a limit, but where signs are words."""
    asked = case.find_quantity("characters")
    if asked is None or not case.text.strip():
        return
    if not asked.is_limit and parts.count_words(case.text) is not None:
        asked = Quantity("characters", asked.least * _LEAST_OF_LIMIT, asked.most, is_limit=True)
    yield from _compare(case, asked, parts.count_characters(case.text), 0)


def check_speaking_time(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text can be spoken in the time that its brief has."""
    asked = case.demands.quantities.get("seconds")
    if asked is None or not (case.text.strip() and case.is_spoken):
        return
    if "words" in case.demands.quantities or asked.most > MAX_SPOKEN_S:
        return
    time = estimate_speaking_time(case.sample)
    slack = case.thresholds.length_slack
    if time.least_s > asked.most or time.most_s < asked.least * (1 - slack):
        message = f"The text takes about {time.usual_s:.0f} s to speak, not {asked.most:g} s."
        yield case.report(message, 0.6, instruction=f"It is to be spoken in {asked.most:g} s.")


def check_sentences(case: TextCase) -> Iterator[ReviewIssue]:
    """Check the number of sentences."""
    asked = case.find_quantity("sentences")
    if asked is None or "words" in case.demands.quantities:
        return
    found = parts.split_sentences(_cut_sources(case.sample))
    finished = sum(map(parts.is_finished, found))
    if found:
        # What does not end in a stop may be a heading, a greeting or a name.
        yield from _compare_parts(case, asked, {len(found), finished or len(found)}, exact=False)


def check_paragraphs(case: TextCase) -> Iterator[ReviewIssue]:
    """Check the number of paragraphs."""
    asked = case.find_quantity("paragraphs")
    if asked is None:
        return
    blocks = parts.split_paragraphs(_SIGN_OFF.sub("", _cut_sources(case.sample)))
    lines = parts.split_lines(case.sample)
    # A short line is a heading, a greeting or a name.
    counts = {sum(len(one) > 60 for one in found) or len(found) for found in (blocks, lines)}
    yield from _compare_parts(case, asked, counts | {len(blocks)}, exact=False)


def check_lines(case: TextCase) -> Iterator[ReviewIssue]:
    """Check the number of lines; of what is sung, stanzas may be meant."""
    asked = case.find_quantity("lines")
    if asked is None or case.is_code:
        return
    found = parts.split_lines(case.sample)
    lines, stanzas = len(found), len(parts.split_paragraphs(case.sample))
    counts = {lines}
    if stanzas > 1:
        counts |= {stanzas, stanzas // 2, (stanzas + 1) // 2}
    if lines > 1 and _is_heading(found[0], found[1:]):
        counts.add(lines - 1)
    if lines == 1:
        counts.add(len(re.split(r"\s/\s|\s\|\s", found[0])))
    yield from _compare_parts(case, asked, counts, exact=False)


def check_items(case: TextCase) -> Iterator[ReviewIssue]:
    """Check the number of items of what was asked for as a number of things."""
    asked = case.find_quantity("items")
    if asked is None or case.is_code or not case.text.strip():
        return
    text = _cut_sources(case.sample)
    marked, lines = len(parts.split_items(text)), parts.split_lines(text)
    blocks = parts.split_paragraphs(text)
    if marked >= 2:
        counts = {marked}
    elif len(lines) > 1:
        counts = _count_unmarked(lines, blocks)
    else:
        found = len(parts.split_sentences(text))
        separated = re.split(r"[,;、，；،؛/|]| and | und | et | y | e ", lines[0] if lines else "")
        counts = {found, found - 1, len(separated), len(separated) - 1}
    yield from _compare_parts(case, asked, counts, exact=True)


def _count_unmarked(lines: list[str], blocks: list[str]) -> set[int]:
    """Count what may be the items of a list without marks: its lines, or its paragraphs."""
    counts = {len(lines), len(blocks)}
    for parts_of in (lines, blocks):
        if _is_heading(parts_of[0], parts_of[1:]) or parts_of[0].rstrip().endswith((":", "：")):
            counts.add(len(parts_of) - 1)
    # A heading and its text are one item.
    short, long = lines[::2], lines[1::2]
    if len(short) == len(long) and all(map(_is_heading, short, [[one] for one in long])):
        counts.add(len(short))
    return counts


def _is_heading(line: str, others: list[str]) -> bool:
    """Tell whether a line is a heading of others: short, and without a stop where they have it."""
    stopped = any(map(parts.is_finished, others))
    is_short = len(line) * len(others) <= sum(map(len, others))
    return is_short and not parts.is_finished(line) and (stopped or line.lstrip()[:1] in "#*")


def _compare(case: TextCase, asked: Quantity, has: float, small: int) -> Iterator[ReviewIssue]:
    """Compare a measure with what was asked: far off blocks, a little off is told."""
    slack = case.thresholds.limit_slack if asked.is_limit else case.thresholds.length_slack
    least, most = asked.least * (1 - slack), asked.most * (1 + slack)
    if asked.is_limit and asked.unit == "characters":
        least, most = asked.least, asked.most
    off = least - has if has < least else has - most
    if off <= 0 or abs(has - (asked.least if has < least else asked.most)) <= (
        0 if asked.is_limit else small
    ):
        if not asked.least <= has <= asked.most and asked.is_limit:
            message = f"The text has {has:.0f} {asked.unit}, not {asked.wording}."
            yield case.report(message, 0.15, blocks=False)
        return
    message = f"The text has {has:.0f} {asked.unit}, not {asked.wording}."
    yield case.report(message, 0.6, instruction=f"Keep to {asked.wording}.")


def _compare_parts(
    case: TextCase, asked: Quantity, counts: set[int], *, exact: bool
) -> Iterator[ReviewIssue]:
    """Compare the ways to count parts with what was asked; the nearest counts."""
    low, high = asked.least, asked.most
    off, has = min((max(low - n, n - high, 0), n) for n in counts)
    if off <= 0:
        return
    edge = low if has < low else high
    far = off > (0 if exact else max(1, case.thresholds.parts_slack * edge))
    # One sentence or paragraph is one: two are another form.
    far = far or (not exact and edge == 1 and asked.unit == "paragraphs")
    message = f"The text has {max(has, 0)} {asked.unit}, not {asked.wording}."
    exactly = f"exactly {high:g} {asked.unit}" if low == high else asked.wording
    yield case.report(
        message, 0.6 if far else 0.2, blocks=far, instruction=f"Write {exactly}." if far else ""
    )


def _cut_sources(text: str) -> str:
    """Cut the list of sources off the end of a text."""
    lines = text.splitlines()
    heads = compile_phrases("source_heads")
    for i in range(max(1, len(lines) // 3, len(lines) - _SOURCE_LINES), len(lines)):
        head = fold_phrase(lines[i][:80]).lstrip("#*-_ ")
        match = heads.match(head)
        if match and head[match.end() : match.end() + 1] in {"", ":", "*", " "}:
            return "\n".join(lines[:i])
    return text
