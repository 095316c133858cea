"""Checks of a node's result against the expectations of its plan, by exact counts."""

import csv
import re
from collections.abc import Iterator

from toolkit.contract.base import JsonObject
from toolkit.contract.plans import Amount
from toolkit.media import text_parts as parts
from toolkit.media.text_counts import COUNTERS
from toolkit.media.text_languages import find_foreign_part
from toolkit.planning.capability_kinds import is_field_valid
from toolkit.planning.review.evidence import Evidence, Inspection, NodeCheck, ReviewIssue
from toolkit.planning.review.phrases import match_source_head
from toolkit.planning.review.text_case import MAX_FOREIGN_SHARE, quote

_DURATION_SLACK = 0.1  # share of a duration that is a single number
_SOURCE_LINES = 40  # maximum length of a list of sources at the end of a text
_TAG = re.compile(r"<[a-z][a-z0-9]*(?:\s[^<>]*)?/?>", re.I)
_MARKDOWN = re.compile(r"^\s{0,3}#{1,6}\s+\S|\*\*[^*\n]+\*\*|^```|\[[^\]\n]+\]\([^)\n]+\)", re.M)


def check_amounts(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a text has the words, sentences, items and so on that its plan expects."""
    item, expect = look.item, look.item.node.expect
    if expect is None or not item.text or not item.capability.produces.startswith("text/"):
        return
    body = _cut_sources(item.text)
    for unit, count in COUNTERS.items():
        amount = getattr(expect, unit)
        if amount is None:
            continue
        lower, upper = read_range(amount)
        counts = count(item.text) | count(body)
        if not counts or any(lower <= n <= upper for n in counts):
            continue
        actual = min(counts, key=lambda n: max(lower - n, n - upper))
        target = describe_range(lower, upper)
        instruction = f"Write {target} {unit}: the last text had {actual}."
        yield _report(item, f"The text has {actual} {unit}, not {target}.", instruction)


def read_range(amount: Amount) -> tuple[float, float]:
    """Read the bounds of an amount: a number is both, and an open bound is 0 or infinity."""
    if isinstance(amount, list):
        lower, upper = amount
        return lower or 0.0, float("inf") if upper is None else upper
    return amount, amount


def describe_range(lower: float, upper: float) -> str:
    """Describe a range of numbers in words.

    >>> describe_range(3, 3), describe_range(0, 50), describe_range(20, float("inf"))
    ('exactly 3', 'at most 50', 'at least 20')
    """
    if lower == upper:
        return f"exactly {lower:g}"
    if upper == float("inf"):
        return f"at least {lower:g}"
    return f"{lower:g} to {upper:g}" if lower else f"at most {upper:g}"


def _cut_sources(text: str) -> str:
    """Return a text without the list of sources at its end, if it has one."""
    lines = text.splitlines()
    for i in range(max(1, len(lines) - _SOURCE_LINES), len(lines)):
        match = match_source_head(lines[i])
        if match and match.string[match.end() :].strip("*_ ")[:1] in ("", ":"):
            return "\n".join(lines[:i])
    return text


def check_expected_language(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a text is in the language that its plan expects."""
    item, expect = look.item, look.item.node.expect
    if expect is None or expect.language is None or not item.text:
        return
    foreign = find_foreign_part(item.text, expect.language, MAX_FOREIGN_SHARE)
    if foreign:
        message = f"The text is not in `{expect.language}`: {quote(foreign)}."
        yield _report(item, message, f"Write all of it in this language: {expect.language}.")


def check_format(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a text has the format that its plan expects: CSV, HTML, or without Markdown."""
    item, expect = look.item, look.item.node.expect
    if expect is None or expect.format is None or not item.text:
        return
    is_right = {
        "csv": _is_table(item.text),
        "html": _TAG.search(item.text) is not None,
        "plain": not _MARKDOWN.search(item.text),
    }
    if not is_right.get(expect.format, True):
        message = f"The text is not {expect.format}, as was asked for."
        yield _report(item, message, f"Answer with {expect.format} only.")


def _is_table(text: str) -> bool:
    """Return whether a text is CSV of at least two rows with the same number of fields."""
    try:
        rows = [len(row) for row in csv.reader(text.strip().splitlines(), strict=True) if row]
    except csv.Error:
        return False
    return len(set(rows)) == 1 and len(rows) > 1 and "```" not in text


def check_expected_duration(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a sound lasts as long as its plan expects; if not, blame its text, if any."""
    item, expect = look.item, look.item.node.expect
    sound = item.sound if expect is not None and expect.duration_s is not None else None
    if expect is None or expect.duration_s is None or sound is None or not sound.is_whole:
        return
    lower, upper = read_range(expect.duration_s)
    if lower == upper:  # nobody speaks a text in 30.0 seconds
        lower, upper = lower * (1 - _DURATION_SLACK), upper * (1 + _DURATION_SLACK)
    if lower <= sound.seconds <= upper:
        return
    target = describe_range(lower, upper)
    is_open = not lower or upper == float("inf")
    aim = min(max(sound.seconds, lower), upper) if is_open else (lower + upper) / 2
    texts = [source for source in look.sources if source.text and source.brief]
    if texts and texts[-1].text:
        words = parts.count_words(texts[-1].text)
        share = aim / sound.seconds
        size = f"about {round(words * share)} words" if words else f"{share:.0%} of the length"
        message = f"Spoken, it takes {sound.seconds:.1f} s, not {target} s."
        change = f"Write {size}: spoken, the last text took {sound.seconds:.0f} s, not {target} s."
        yield _report(texts[-1], message, change)
        return
    speed = item.node.input.get("speed", 1.0)
    faster = round(float(speed) * sound.seconds / aim, 2) if isinstance(speed, int | float) else 0
    is_valid = is_field_valid(item.capability, {**item.node.input, "speed": faster}, "speed")
    message = f"The sound lasts {sound.seconds:.1f} s, not {target} s."
    yield _report(item, message, changes={"speed": faster} if is_valid else {})


def check_expected_size(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a picture has the width and the height that its plan expects."""
    item, expect = look.item, look.item.node.expect
    if expect is None or item.blob is None or not item.blob.media_type.startswith("image/"):
        return
    for name, size in zip(("width", "height"), item.size or (), strict=False):
        amount = getattr(expect, name)
        if amount is None:
            continue
        lower, upper = read_range(amount)
        if not lower <= size <= upper:
            message = f"The {name} of the image is {size}, not {describe_range(lower, upper)}."
            yield _report(item, message, changes={name: int(lower or upper)})


def _report(
    item: Evidence, message: str, instruction: str = "", changes: JsonObject | None = None
) -> ReviewIssue:
    return ReviewIssue(
        item.node.id,
        "objective_alignment",
        0.7,
        message,
        is_blocking=True,
        changes=changes or {},
        instruction=instruction,
    )


EXPECTATION_CHECKS: tuple[NodeCheck, ...] = (
    check_amounts, check_expected_language, check_format, check_expected_duration,
    check_expected_size,
)  # fmt: skip
