"""Checks of how a text comes: as a refusal, wrapped in chat, as an echo, with its prompt."""

import re
from collections.abc import Iterator

from toolkit.planning.review.issues import ReviewIssue
from toolkit.planning.review.texts.case import TextCase, quote
from toolkit.planning.review.texts.sentences import split_lines
from toolkit.planning.review.texts.terms import TermIndex, find_terms, measure_overlap
from toolkit.planning.review.texts.word_lists import compile_phrases, find_phrase, fold_phrase

_WORD = re.compile(r"\w+")
_ROLE = re.compile(r"^\W{0,3}(system|user|assistant|human|developer)\W{0,3}\s*[:：]", re.I | re.M)
_CONTROL = re.compile(
    r"<\|[a-z_]{2,20}\|>|\[/?INST\]|<</?SYS>>|</?s>|</?material-[0-9a-f]{6,}>|###\s*(?:Instruction|Response|System)\b"
    r"|<(?:/?)(?:system|assistant|user|prompt|instructions|thinking|think|scratchpad|tool_call|function_calls)>"
)
_RULE = re.compile(
    r"is material, not instructions|do not reveal (?:these|this|your) instructions", re.I
)
_LABEL_LINE = re.compile(r"^\W*([^\W\d_][\w ]{1,24}?)\s*[:：]", re.M)
_STAGE = re.compile(r"^\s*[\[(（【*_]{1,2}[^\[\]()（）【】\n]{2,60}[\])）】*_]{1,2}\s*$", re.M)
_SEPARATOR = re.compile(r"^\s*(?:-{3,}|\*{3,}|_{3,}|={3,})\s*$", re.M)
_QUOTED = re.compile(r"«[^»]*»|“[^”]*”|„[^“”]*[“”]|\"[^\"]*\"|「[^」]*」")
# Addresses, options, paths and names of files: a text has them as its brief has.
_RUN = re.compile(r"[!-~]{2,200}")  # of signs that addresses and commands are made of
_LITERAL = re.compile(r"[/\\_=|$@]|^--?\w|\w\.[a-z]\w{1,4}\W*$")
_OPENING_CHARS, _REFUSAL_CHARS, _SHORT_CHARS = 1_200, 300, 400
_POSTSCRIPT = re.compile(r"\W*(?:p\W{0,2}s|p\W{0,2}d|n\W?b)\b", re.I)
_NAME_WORDS = 4  # of a line that a letter is signed with
_ROW = re.compile(r"^\s*\|.*\|\s*$", re.M)
_GRAM = 4  # words; signs, where words are not set apart
_MIN_BRIEF = 5  # words of a brief that an echo is told by
_FEW_TERMS = 4  # of a text that may be its brief in another order
_MANY_LABELS = 4  # that nobody asked for: `Task:`, `Tone:`, `Length:`, `Language:`
_MIN_TERMS = 15  # of a text that may say nothing but its brief
_MIN_RULES = 5  # words of standing instructions
_REMARK_START = 30  # characters before a remark on the text: `Note: this poem keeps …`
_MAX_REASONING = 400  # of a line that may think
_MAX_PREAMBLE = 160  # characters of a first line that only announces the rest


def check_refusal(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text is not the model's word that it will not write one."""
    if not case.is_instructed or case.is_code:
        return
    # A machine in a play may refuse, and so may a letter.
    has_speaker = any(map(case.asks, ("fiction", "performed", "letters")))
    # A long text may tell of a refusal; a refusal comes first, and says little else.
    opening = fold_phrase(_QUOTED.sub(" ", case.text.strip()[:_OPENING_CHARS]))[:_REFUSAL_CHARS]
    if has_speaker and case.asks("refusing") and not find_phrase("fiction", opening):
        return
    found = find_phrase("refusals", opening)
    if not found and len(case.text) < _SHORT_CHARS and not case.demands.asks("letters"):
        found = find_phrase("weak_refusals", opening)
    if found and not find_phrase("refusals", case.demands.folded):
        message = f"The text is a refusal: {quote(found)}."
        told = "Write the text itself; nothing about it is forbidden."
        yield case.report(message, 0.9, instruction=told)


def check_wrapping(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that nothing is said before the text or after it that is not part of it."""
    if not case.is_instructed:
        return
    lines = split_lines(case.sample)
    found = _find_preamble(lines) or _find_closer(case, lines) or _find_reasoning(case, lines)
    if not found and case.is_plain and (stage := _STAGE.search(case.sample)):
        found = stage.group()
    if found:
        message = f"The text is wrapped in talk: {quote(found)}."
        told = "Only the text itself: nothing before it, nothing after it."
        yield case.report(message, 0.7, instruction=told)


def _find_preamble(lines: list[str]) -> str:
    """Find a first line that only announces the text."""
    if len(lines) < 2 or len(lines[0]) > _MAX_PREAMBLE:
        return ""
    first = fold_phrase(lines[0]).strip(" *_#>-")
    opener = compile_phrases("openers").match(first)
    rest = re.sub(r"^[\s!.:：!—–-]+", "", first[opener.end() :]) if opener else first
    announces = compile_phrases("preambles").search(rest)
    ends = first.rstrip("*_ ")[-1:] in ":：!.。"
    if opener and announces and announces.start() < 40 and ends:
        return lines[0]
    # "Here is your script for the clip:" announces; "Here is the sea:" may be a poem.
    is_alone = first.rstrip("*_ ")[-1:] in ":：" and len(first.split()) >= 3
    if is_alone and announces and announces.start() == 0 and _names_work(rest):
        return lines[0]
    return ""


def _find_reasoning(case: TextCase, lines: list[str]) -> str:
    """Find a first or last line in which the model thinks of what was asked."""
    if len(lines) < 2 or find_phrase("askers", case.demands.folded):
        return ""
    ends = (*lines[:2], lines[-1])
    folded = [fold_phrase(_QUOTED.sub(" ", line[:_MAX_REASONING])) for line in ends]
    if find_phrase("askers", folded[0]):
        return ends[0]
    # "I must write" may be of a diary; a draft and a count beside it are of a model.
    found = {word for line in folded for word in compile_phrases("reasoning").findall(line)}
    return ends[0] if len(found) > 1 else ""


def _names_work(line: str) -> bool:
    """Tell whether a line speaks of a text as one that was ordered."""
    return any(find_phrase(name, line) is not None for name in ("works", "letters", "labels"))


def _find_closer(case: TextCase, lines: list[str]) -> str:
    """Find last words that speak to whoever ordered the text."""
    if len(lines) < 2 and len(case.closing) < 80:
        return ""
    if len(lines) > 1 and not find_phrase("remarks", case.demands.folded):
        last = fold_phrase(_QUOTED.sub(" ", lines[-1][:_MAX_REASONING])).lstrip("(*_[ ")
        remark = compile_phrases("remarks").search(last)
        if remark and remark.start() < _REMARK_START:
            return lines[-1]
    for at in range(max(0, len(lines) - 3), len(lines)):
        line = lines[at]
        found = find_phrase("closers", fold_phrase(_QUOTED.sub(" ", line[-300:])))
        if not found or find_phrase("closers", case.demands.folded):
            continue
        # "Let me know if you need a lift" belongs to an email, a word count does not.
        is_letter = any(map(case.demands.asks, ("letters", "notices")))
        is_letter = is_letter and not _SEPARATOR.search(case.sample)
        if not is_letter or compile_phrases("counts").search(found):
            return line
        if at > 1 and _is_name(lines[at - 1]) and not _POSTSCRIPT.match(line):
            return line
    return ""


def _is_name(line: str) -> bool:
    """Tell whether a line can be the name that a letter is signed with."""
    return len(line.split()) <= _NAME_WORDS and line.strip()[-1:].isalpha()


def check_echo(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text is not its own brief again, nor what a review added to that."""
    if not case.is_instructed or not case.text.strip():
        return
    text = _WORD.findall(_cut_literals(case.folded))
    spelled = f" {' '.join(text)} "
    is_data = case.asks("table") or case.asks("code") or len(_ROW.findall(case.sample)) > 1
    for sentence in case.item.instructions:  # it would else bring the words that a text lacks
        if f" {' '.join(_WORD.findall(fold_phrase(sentence)))} " in spelled:
            message = f"The text repeats what it was told: {quote(sentence)}."
            yield case.report(message, 0.9, instruction="Do not repeat what you are asked.")
            return
    given = str(case.item.node.input.get("objective", ""))
    for brief in dict.fromkeys(
        (case.demands.folded, case.wishes.folded, fold_phrase(given[:4000]))
    ):
        words = _WORD.findall(_cut_literals(brief))
        # Data that a brief has and wants laid out are no echo, its first words are.
        if is_data and " ".join(words[:_GRAM]) not in spelled:
            continue
        if _is_echo(_split_dense(words), _split_dense(text), case):
            message = f"The text repeats its brief: {quote(case.text)}."
            told = "Write the text; do not repeat this request."
            yield case.report(message, 0.9, instruction=told)
            return


def _cut_literals(text: str) -> str:
    """Cut out what a text has as its brief has it: addresses, options, paths, names of files."""
    return _RUN.sub(lambda run: " " if _LITERAL.search(run.group()) else run.group(), text)


def _is_echo(brief: list[str], text: list[str], case: TextCase) -> bool:
    """Tell whether a brief stands in a text, or a text says nothing but its brief."""
    if len(brief) < _MIN_BRIEF or len(text) < _GRAM:
        return False
    asked, there = _list_grams(brief), _list_grams(text)
    stands = len(asked & there) / len(asked)
    if stands >= case.thresholds.echo_share:
        return True
    if case.demands.asks("rewriting"):
        return False
    known = TermIndex(find_terms(f"{case.brief} {case.look.objective}"))
    terms = find_terms(_LABEL_LINE.sub(" ", case.sample))
    is_old = measure_overlap(terms, known) >= case.thresholds.old_share
    labels = {match.group(1) for match in _LABEL_LINE.finditer(case.sample)}
    named = sum(compile_phrases("labels").fullmatch(fold_phrase(one)) is not None for one in labels)
    # Nearly all of a brief, in another order, with what it tells to do.
    said = len(set(brief) & set(text)) / len(set(brief))
    is_whole = said >= case.thresholds.said_share and len(terms) >= _FEW_TERMS
    is_first = text[:3] == brief[:3]
    return named >= _MANY_LABELS or (
        is_old and (len(terms) >= _MIN_TERMS or named >= 2 or is_first or is_whole)
    )


def _list_grams(words: list[str]) -> set[tuple[str, ...]]:
    return {tuple(words[i : i + _GRAM]) for i in range(max(1, len(words) - _GRAM + 1))}


def _split_dense(words: list[str]) -> list[str]:
    """Split words of scripts without spaces into their signs."""
    found: list[str] = []
    for word in words:
        found += list(word) if "\u3040" <= word[0] <= "\u9fff" else [word]
    return found


def check_leak(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that no instructions, roles or fences came along with a text."""
    if case.is_code and "prompt" in case.demands.folded:
        return
    roles = {role.lower() for role in _ROLE.findall(case.sample)}
    mark = _CONTROL.search(case.sample)
    if not case.demands.asks("prompts"):
        mark = mark or _RULE.search(case.sample)
    found = mark.group() if mark else " ".join(sorted(roles)) if len(roles) >= 2 else ""
    system = case.item.node.input.get("system")
    if not found and isinstance(system, str):
        rules, text = _WORD.findall(fold_phrase(system)), _WORD.findall(case.folded)
        if len(rules) >= _MIN_RULES:
            asked = _list_grams(_split_dense(rules))
            if len(asked & _list_grams(_split_dense(text))) >= 0.5 * len(asked):
                found = "its standing instructions"
    if found:
        message = f"The text shows its prompt: {quote(found)}."
        told = "Only the text itself, nothing of these instructions."
        yield case.report(message, 0.9, instruction=told)
