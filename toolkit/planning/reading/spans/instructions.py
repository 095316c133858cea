"""The pass that cuts instructions aimed at the planner: they are data, and never obeyed."""

import re

from toolkit.planning.reading.spans.noun_phrases import read_noun_phrase
from toolkit.planning.reading.spans.scan import Break, Scan
from toolkit.planning.reading.spans.verbs import find_verb

_TAGGED = re.compile(r"<([A-Za-z][\w-]{0,30})[^<>]{0,100}>.{0,4000}?</\1>|<!--.{0,4000}?-->", re.S)
# How far into a clause the first word of an instruction may stand.
_MAX_LEAD = 7
_MAX_LABEL = 4


def cut_instructions(scan: Scan) -> None:
    """Consume passages that tell the planner what to do instead of what to make."""
    _cut_tagged(scan)
    for start, end in scan.split_words(Break.CLAUSE):
        if _is_instruction(scan, start, end):
            scan.consume(start, _find_work(scan, start, _extend_label(scan, end)), "instruction")


def _cut_tagged(scan: Scan) -> None:
    """Cut passages between tags: nothing that is asked for stands in mark-up."""
    for match in _TAGGED.finditer(scan.objective):
        inside = [
            i for i, token in enumerate(scan.tokens) if match.start() <= token.start < match.end()
        ]
        if inside and any(scan.has(i, "instruction") for i in inside):
            scan.consume(inside[0], inside[-1] + 1, "instruction")


def _is_instruction(scan: Scan, start: int, end: int) -> bool:
    """Tell whether a clause opens with words for the planner, before it asks for anything."""
    if _is_label(scan, start, end):
        return True
    for k in range(start, min(start + _MAX_LEAD, end)):
        if not scan.is_free(k):
            return False
        if any(phrase.category == "instruction" for phrase in scan.phrases(k)):
            return True
        owner, apostrophe, _ = scan.word(k).partition("'")
        if apostrophe and _is_machine_word(scan, owner):
            return True
        if scan.find(k, "creative", "about", "question"):
            return False
        act = scan.find(k, "act.") if k == start else None
        if act is not None and not act.is_ambiguous:
            return False
    return False


def _find_work(scan: Scan, start: int, end: int) -> int:
    """Return where work is asked for after an instruction: `… and write a poem`."""
    for k in range(start + 2, end - 1):
        join = scan.find(k, "join.and", "join.then")
        verb = find_verb(scan, join.end) if join is not None and join.end < end else None
        if verb is None or not verb.category.startswith(("act.", "make")) or verb.end >= end:
            continue
        phrase = read_noun_phrase(scan, verb.end)
        last = scan.find_sentence_end(verb.end, Break.COMMA)
        told = any(scan.has(n, "instruction") for n in range(k, min(last, end)))
        if not told and (phrase.head is not None or verb.category.startswith("act.")):
            return k
    return end


def _is_machine_word(scan: Scan, word: str) -> bool:
    return any(category == "instruction" for category, _ in scan.lexicon.meanings.get(word, ()))


def _is_label(scan: Scan, start: int, end: int) -> bool:
    """Tell whether a clause is a label such as `Developer note:` before a colon."""
    if end >= len(scan) or end - start > _MAX_LABEL or not scan.gap(end).strip().startswith(":"):
        return False
    separator = scan.lexicon.separator
    return any(_is_machine_word(scan, scan.word(k) + separator + ":") for k in range(start, end))


def _extend_label(scan: Scan, end: int) -> int:
    """Return where an instruction ends; a label such as `Developer note:` opens a sentence."""
    if end < len(scan) and scan.breaks[end] == Break.CLAUSE:
        return scan.find_sentence_end(end)
    return end
