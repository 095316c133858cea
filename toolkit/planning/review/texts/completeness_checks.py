"""Checks that a text is there, and whole: not empty, not cut off, nothing of a list missing."""

import itertools
import re
import unicodedata
from collections.abc import Iterator

from toolkit.contract.base import JsonObject
from toolkit.planning.reading.words.tokens import fold_text
from toolkit.planning.review.evidence import is_field_valid
from toolkit.planning.review.issues import Remedy, ReviewIssue
from toolkit.planning.review.texts.case import TextCase, quote
from toolkit.planning.review.texts.sentences import (
    LIST_MARK,
    count_characters,
    count_words,
    is_finished,
    read_numbering,
    split_lines,
    split_sentences,
)
from toolkit.planning.review.texts.word_lists import (
    compile_phrases,
    fold_phrase,
    load_function_words,
)

_OPEN_MARKS = re.compile(r"[,;:–—(\[{«„“‘\-、，；：（「『]$")
_HEADING = re.compile(r"^\s{0,3}(#{1,6})\s+\S")
_BOLD_LINE = re.compile(r"^\s{0,3}\*\*[^*\n]{1,60}\*\*:?\s*$")
_KISSES = re.compile(r"(?<=\w )[xX]{1,4}$")
_BOLD_LEVEL, _BARE_LEVEL = 7, 8  # of headings, under those with signs
_HEADING_WORDS, _DENSE_HEADING = 4, 12  # words; signs, where words are not set apart
_ADDRESS = re.compile(r"https?://\S+$|(?<!\S)\S{1,80}@\S+$|[#@]\w+$|\d[\d\s/()+-]{5,}$")
_ASIDE = re.compile(r"\s*[(\[（【][^()\[\]（）【】]{1,80}[)\]）】]\s*$")  # of its own, at the end
_PAIRS = {")": "(", "]": "[", "}": "{"}
_STRINGS = re.compile(r"\"\"\"|'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'")
_LAST_CHARS = 2_000  # of a last line
_SIGNATURE_WORDS = 7  # of a line after a greeting
_FRAGMENT_WORDS, _NOTICE_WORDS = 5, 15  # of last words that are no sentence, of their line
_MIN_LAST_WORDS = 4  # of a last line that could be a sentence
_MIN_LAST_CHARS = 12  # the same, where words are not set apart
_MIN_BODY_WORDS, _MIN_BODY_CHARS = 3, 6  # of the body of a card


def check_emptiness(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that there is a text, and not only signs that are not seen."""
    if any(char.isalnum() for char in case.text):
        return
    visible = [char for char in case.text if unicodedata.category(char)[0] == "S"]
    if visible and "emoji" in case.demands.folded:
        return
    told = "The text is empty." if not case.text.strip() else "The text has no word."
    yield case.report(told, 1.0, criterion="output_completeness")


def check_card_body(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text says something if a card shows it as its body."""
    shown = any(
        "text_boxes" in other.capability.output_model.model_fields
        and "body" not in other.node.input
        for other in case.look.dependents
    )
    words = count_words(case.text)
    is_short = (
        count_characters(case.text) < _MIN_BODY_CHARS
        if words is None
        else (words < _MIN_BODY_WORDS)
    )
    said = fold_phrase(case.text).strip(" .!…。！")
    if shown and is_short and said not in fold_phrase(case.look.objective):
        yield case.report(
            f"The body of the card says nothing: {quote(case.text)}.",
            0.9,
            criterion="output_completeness",
            instruction="Write at least one whole sentence.",
        )


def check_truncation(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that the model did not stop at its limit."""
    item = case.item
    if (item.output or {}).get("finish_reason") != "length":
        return
    changes: JsonObject = {}
    fields = item.capability.input_model.model_fields
    if "max_tokens" in fields:
        now = item.node.input.get("max_tokens", fields["max_tokens"].default)
        doubled = now * 2 if isinstance(now, int) else 0
        if is_field_valid(
            item.capability, {**item.node.input, "max_tokens": doubled}, "max_tokens"
        ):
            changes = {"max_tokens": doubled}
    yield case.report(
        "The text is cut off.",
        criterion="output_completeness",
        changes=changes,
        remedy=Remedy.RERUN if changes else Remedy.NONE,
    )


def check_ending(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that the last sentence is whole, and that what was opened is closed."""
    text = case.sample.rstrip()
    lines = split_lines(text)
    if not lines:
        return
    fault = _find_open_end(case, text, lines)
    if fault and not case.asks("unfinished") and not case.asks("marks"):
        yield case.report(
            f"The text breaks off: {quote(lines[-1][-50:])} {fault}.",
            criterion="output_completeness",
            instruction="Finish the last sentence.",
        )


def _find_open_end(case: TextCase, text: str, lines: list[str]) -> str:
    if text.count("```") % 2:
        return "leaves a block of code open"
    if case.is_code:
        return "leaves a bracket open" if _leaves_bracket(text) else ""
    last = lines[-1].strip()[-_LAST_CHARS:]
    if (
        is_finished(text)
        or is_finished(_ASIDE.sub("", text[-_LAST_CHARS:]))
        or _ADDRESS.search(last)
        or last.startswith(("|", "#", "http"))
    ):
        return ""
    if _KISSES.search(last):
        return ""
    if unicodedata.category(text[-1])[0] in "SM" and text[-1] not in "+<=>|~^`$":
        return ""  # an emoji
    if case.has_phrase("source_heads") and _follows_sources(lines):
        return ""
    if _is_signature(lines) or _is_farewell(lines):
        return ""
    earlier = split_sentences(last)
    is_open = _OPEN_MARKS.search(last) is not None
    is_complete = (
        len(earlier) > 1
        and not is_open
        and _is_fragment(earlier[-1], last)
        and not _ends_dangling(case, last)
    )
    if len(earlier) > 1 and not LIST_MARK.match(last) and not is_complete:
        return "ends without a full stop"
    if is_open and count_words(last) != 1:
        return "ends in the middle of a sentence"
    if (len(lines) > 1 or len(earlier) > 1) and _ends_dangling(case, last):
        return "ends on a word that needs another"
    # The last of a list often has no stop, but then it seldom ends on a function word.
    is_item = LIST_MARK.match(last) is not None and count_words(last) is not None
    if is_item and fold_text(last.split()[-1]) not in load_function_words():
        return ""
    return _compare_with_others(last, lines)


def _is_fragment(text: str, line: str) -> bool:
    """Tell whether the last words of a short line can do without a stop: `Doors 8 pm`."""
    words, all_words = count_words(text), count_words(line)
    if words is None or all_words is None or all_words > _NOTICE_WORDS:
        return False
    ends_in_number = text.rstrip()[-1:].isdigit()
    return words <= (_SIGNATURE_WORDS if ends_in_number else _FRAGMENT_WORDS)


def _leaves_bracket(text: str) -> bool:
    """Tell whether code opens brackets that it does not close; strings do not count."""
    stack: list[str] = []
    for char in _STRINGS.sub("", text):
        if char in "([{":
            stack.append(char)
        elif char in ")]}":
            if stack and stack[-1] == _PAIRS[char]:
                stack.pop()
            elif char != ")":
                return False  # prose or another language: no telling
    return bool(stack) and len(stack) <= 12


def _follows_sources(lines: list[str]) -> bool:
    heads = compile_phrases("source_heads")
    return any(heads.match(fold_phrase(line).lstrip("#*-_ ")) for line in lines[-12:])


def _is_signature(lines: list[str]) -> bool:
    """Tell whether the last line is a name after a greeting, or the greeting itself."""
    if len(lines[-1].split()) > _SIGNATURE_WORDS:
        return False
    before = [line.rstrip() for line in lines[-4:-1]]
    short_lines = all(len(line.split()) <= _SIGNATURE_WORDS for line in before[-2:])
    greets = any(line.endswith((",", "，", "،")) for line in before)
    return (greets and short_lines) or (
        len(lines) > 2 and len(lines[-1].split()) <= 4 and lines[-1].strip()[-1:] not in ",:;"
    )


def _is_farewell(lines: list[str]) -> bool:
    """Tell whether the last line is that of a letter over the place for its signature."""
    short = [len(line.split()) <= _SIGNATURE_WORDS for line in (lines[0], lines[-1])]
    ends = [line.rstrip()[-1:] in {",", "，", "،"} for line in (lines[0], lines[-1])]
    return len(lines) > 2 and all(short) and all(ends) and is_finished(lines[-2])


def _ends_dangling(case: TextCase, last: str) -> bool:
    code = case.language.code
    if code not in {"en", "de", "fr", "es", "it", "pt", "ar"}:
        return False
    words = fold_phrase(last).split()
    return bool(words) and compile_phrases("dangling", code).fullmatch(words[-1]) is not None


def _compare_with_others(last: str, lines: list[str]) -> str:
    """Compare the last line with those before it: where all end in a stop, it should."""
    is_item = LIST_MARK.match(last) is not None
    others = [line.strip() for line in lines[:-1] if (LIST_MARK.match(line) is not None) == is_item]
    words = count_words(last)
    is_long = len(last) >= _MIN_LAST_CHARS if words is None else words >= _MIN_LAST_WORDS
    finished = [line for line in others if is_finished(line)]
    if is_long and len(finished) >= 2 and len(finished) * 4 >= len(others) * 3:
        return "ends without a full stop, unlike the lines before"
    return ""


def check_sections(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that no heading stands over nothing where others stand over something."""
    lines = split_lines(case.sample)
    if case.is_code or case.asks("templates") or case.asks("contents"):
        return
    levels = [_find_level(line, case) for line in lines]
    empty = [
        line
        for at, (line, level) in enumerate(zip(lines, levels, strict=True))
        if level and (at + 1 == len(lines) or 0 < levels[at + 1] <= level)
    ]
    full = sum(bool(level) for level in levels) - len(empty)
    if empty and full:
        message = f"Nothing stands under the heading {quote(empty[0])}."
        told = "Write something under each heading."
        yield case.report(message, 0.7, criterion="output_completeness", instruction=told)


def _find_level(line: str, case: TextCase) -> int:
    """Find the level of a heading; none of other lines.

    Without mark-up, what the brief names is a heading where it stands by itself.
    """
    if match := _HEADING.match(line):
        return len(match.group(1))
    if _BOLD_LINE.match(line):
        return _BOLD_LEVEL
    bare = line.strip().rstrip(":：")
    words = count_words(bare)
    is_short = len(bare) <= _DENSE_HEADING if words is None else words <= _HEADING_WORDS
    if not is_short or is_finished(bare) or LIST_MARK.match(line):
        return 0
    named = rf"(?<!\w){re.escape(fold_phrase(bare))}(?!\w)"
    briefs = f"{case.demands.folded} {case.wishes.folded}"
    return _BARE_LEVEL if case.asks("headings") and re.search(named, briefs) else 0


def check_numbering(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that no number of a list is left out."""
    numbers = read_numbering(case.sample)
    if case.is_code or len(numbers) < 3 or numbers[0] not in {0, 1}:
        return
    for before, after in itertools.pairwise(numbers):
        if after > before + 1 and after <= len(numbers) + 5:
            message = f"The list goes from {before} to {after}."
            yield case.report(message, 0.6, criterion="output_completeness")
            return
