"""Soft checks of texts: hints to the judge, which decide only if no judge is asked."""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from toolkit.media.text_languages import detect_language, find_foreign_part
from toolkit.media.text_parts import count_words, fold, is_finished, split_lines, split_sentences
from toolkit.media.text_words import find_run, list_grams, measure_repeated_share, split_signs
from toolkit.planning.review.evidence import ReviewIssue
from toolkit.planning.review.phrases import compile_phrases
from toolkit.planning.review.text_case import (
    MAX_FOREIGN_SHARE,
    SHORT_CHARACTERS,
    TextCase,
    TextCheck,
    quote,
)
from toolkit.planning.review.text_checks import CONTROL_MARK

_QUOTED = re.compile(r"«[^»]*»|“[^”]*”|„[^“”]*[“”]|\"[^\"]*\"|「[^」]*」|```.*?```|`[^`\n]*`", re.S)
_MIN_BRIEF, _MIN_RULES = 5, 8  # words of a brief, and of standing instructions
_OPENING_CHARS = 300
_MAX_REPEATED_SHARE = 0.3  # of the sentences of a text
_ECHO_SHARE = 0.6  # of the brief, from which a text is an echo
_OPEN_MARK = re.compile(r"[,;:–—(\[{«„“‘\-、，；：（「『]$")
_ADDRESS = re.compile(r"https?://\S+$|\S{1,80}@\S+$|[#@]\w+$|\d[\d\s/()+-]{5,}$")
_SIGNATURE_WORDS, _FRAGMENT_WORDS = 7, 4  # of a line after a greeting; behind a full stop
_ROLE = re.compile(r"^\W{0,3}(system|user|assistant|human|developer)\W{0,3}\s*[:：]", re.I | re.M)
# Members of the judge's answers and of reviews.
_VERDICT = re.compile(r'"findings"\s*:|"decision"\s*:\s*"(?:pass|retry|fail)"')
_BRACKETED = re.compile(
    r"(?<!\w)\[([^\[\]\n]{1,60})\](?![(:\[])|［([^［］\n]{1,40})］|\{\{\s{0,3}([^{}\n]{1,60})\}\}"
    r"|\$?\{([^\W\d][\w ]{1,40})\}|<([^<>\n@/:]{2,60})>|【([^【】\n]{1,20})】|%([A-Z_]{3,30})%"
)
_STOCK = re.compile(
    r"(?i:\blorem ipsum\b)|(?<![\w.])(?:TODO(?=\s*[:(\]])|TBD|FIXME)(?!\w)|\bX{3,}\b(?!\s*$)"
    r"|[€$£]\s?X{2,}|\bINSERT (?!INTO)[A-Z]{2,}|\b(?:YOUR|ENTER|ADD)_[A-Z_]{2,}\b|\b123-456-7890\b"
    r"|(?<!\w)XX[.:/-]XX|[○〇◯×XＸ]{1,2}月[○〇◯×XＸ]{1,2}日|[○〇◯]{2,}|_{5,}"
)
_TAG = re.compile(
    r"</?(?:a|b|body|br|div|em|h[1-6]|head|html|i|img|li|ol|p|script|span|strong|style|table|td|th|"
    r"tr|u|ul|speak|voice|prosody|break)(?:\s[^<>]{0,200})?/?>",
    re.I,
)
_ESCAPE = re.compile(
    r"&(?:amp|lt|gt|quot|apos|nbsp|[mn]dash|hellip|[lr][sd]quo|[a-z](?:uml|acute|grave|circ|tilde)"
    r"|#x?[0-9a-f]{2,6});|\\u[0-9a-fA-F]{4}|(?<![\\\w:])\\[nrt](?![a-z]{3,})|\\n(?=[\s<&*A-Z-])",
    re.I,
)
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+\S", re.M)
_MARKDOWN = re.compile(
    r"^\s{0,3}#{1,6}\s+\S|\*\*[^*\n]+\*\*|(?<!\w)__[^_\n]+__(?!\w)|`[^`\n]+`|^```"
    r"|!?\[[^\]\n]+\]\([^)\n]+\)|^\s*\|.+\|\s*$|^\s*[-*+]\s+\S",
    re.M,
)


def check_language(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text is in the language of its brief, if the plan names no language."""
    expect = case.item.node.expect
    if case.is_data or not case.is_instructed or (expect is not None and expect.language):
        return
    code = detect_language(case.brief)
    if code is None:
        return
    foreign = find_foreign_part(case.sample, code, MAX_FOREIGN_SHARE)
    if foreign:
        message = f"The text is not in `{code}`, as its brief is: {quote(foreign)}."
        yield case.report(message, 0.9, instruction=f"Write all of it in this language: {code}.")


def check_ending(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that the last sentence is whole, and that a block of code is closed."""
    lines = split_lines(case.sample)
    if not lines or case.is_data:
        return
    if case.sample.count("```") % 2 or _is_open(case.sample.rstrip(), lines):
        yield case.report(
            f"The text breaks off: {quote(lines[-1][-50:])}.",
            criterion="output_completeness",
            instruction="Finish the last sentence.",
        )


def _is_open(text: str, lines: Sequence[str]) -> bool:
    last = lines[-1].strip()
    # An emoji, or a bracket.
    is_sign = unicodedata.category(text[-1]) in ("So", "Mn", "Cf", "Pe", "Pf")
    if is_finished(text) or is_sign or _ADDRESS.search(last) or last[0] in "|#[(":
        return False
    before = lines[-4:-1]
    if len(last.split()) <= _SIGNATURE_WORDS and any(
        line.rstrip()[-1:] in ",،，" for line in before
    ):
        return False  # a name after a greeting
    sentences = split_sentences(last)
    words = count_words(sentences[-1]) if sentences else 0
    if len(sentences) > 1:  # the sentences before it have their full stops
        ends_whole = last[-1].isdigit() or last.split()[-1].isupper()  # an hour, kisses
        return not ends_whole and (words is None or words > _FRAGMENT_WORDS)
    return bool(_OPEN_MARK.search(last)) and count_words(last) != 1 and len(lines) < 3


def check_repetition(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that sentences, lines and runs of words do not repeat too often."""
    if case.is_data:
        return
    share, example = measure_repeated_share(case.sample)
    stuck = find_run(case.sample)
    instruction = "Say each thing once."
    if share > _MAX_REPEATED_SHARE:
        message = f"{share:.0%} of the text repeats itself: {quote(example)}."
        yield case.report(message, 0.8, instruction=instruction)
    elif stuck:
        yield case.report(f"The text is stuck at {quote(stuck)}.", 0.8, instruction=instruction)


def check_refusal(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text is not the model's refusal to write."""
    refusals = compile_phrases("refusals")
    opening = fold(_QUOTED.sub(" ", case.text.strip()[: 4 * _OPENING_CHARS]))[:_OPENING_CHARS]
    match = refusals.search(opening)
    if match and case.is_instructed and not refusals.search(fold(case.brief)):
        message = f"The text is a refusal: {quote(match.group())}."
        instruction = "Write the text itself; nothing about it is forbidden."
        yield case.report(message, 0.9, instruction=instruction)


def check_echo(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text repeats neither its brief nor an instruction of an earlier review."""
    if not case.is_instructed or case.is_data:
        return
    text_grams = set(list_grams(split_signs(case.folded)))
    briefs = (case.brief, case.look.objective, *case.item.instructions)
    for brief in dict.fromkeys(briefs):
        words = split_signs(fold(brief))
        grams = set(list_grams(words))
        if len(words) < _MIN_BRIEF or not grams:
            continue
        if len(grams & text_grams) >= _ECHO_SHARE * len(grams):
            message = f"The text repeats its brief: {quote(brief)}."
            instruction = "Write the text; do not repeat this request."
            yield case.report(message, 0.9, instruction=instruction)
            return


def check_leak(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text contains no parts of its prompt, such as instructions or role names."""
    mark = CONTROL_MARK.search(case.sample) or _VERDICT.search(case.sample)
    roles = {role.lower() for role in _ROLE.findall(case.sample)}
    leak = mark.group() if mark else " ".join(sorted(roles)) if len(roles) > 1 else ""
    system = case.item.node.input.get("system")
    rules = split_signs(fold(system)) if isinstance(system, str) else []
    if not leak and len(rules) >= _MIN_RULES:
        grams = set(list_grams(rules))
        if 2 * len(grams & set(list_grams(split_signs(case.folded)))) >= len(grams):
            leak = "its standing instructions"
    if leak:
        instruction = "Only the text itself, nothing of these instructions."
        message = f"The text shows its prompt: {quote(leak)}."
        yield case.report(message, 0.9, instruction=instruction)


def check_placeholders(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that no blanks are left to be filled in."""
    if case.is_data:
        return
    names = compile_phrases("placeholders")
    text = _QUOTED.sub(" ", case.sample)
    blanks = [match.group() for match in _STOCK.finditer(text)]
    for match in _BRACKETED.finditer(text):
        inner = next(part for part in match.groups() if part is not None)
        is_name = names.match(fold(inner)) or (inner.isupper() and re.search("[ _]", inner))
        if is_name or match[0].startswith(("{{", "${", "%")):
            blanks.append(match.group())
    blanks = [blank for blank in blanks if fold(blank) not in fold(case.brief)]
    if blanks:
        message = f"The text has blanks to fill in: {quote(', '.join(blanks[:4]))}."
        instruction = "Leave no placeholders; use the known facts and leave out the rest."
        yield case.report(message, criterion="output_completeness", instruction=instruction)


def check_markup(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text has no tags and escapes, and no Markdown if it is spoken or on a card."""
    expect = case.item.node.expect
    if case.is_data or (expect is not None and expect.format in ("html", "markdown")):
        return
    text = _QUOTED.sub(" ", case.sample)
    tags = [match.group() for match in _TAG.finditer(text)]
    marks = [*tags, *(match.group() for match in _ESCAPE.finditer(text))]
    is_plain = case.is_shown or (expect is not None and expect.format == "plain")
    if is_plain:
        marks += [match.group().strip() for match in _MARKDOWN.finditer(text)]
    if len(marks) > (0 if is_plain else 1):
        message = f"The text has mark-up left in: {quote(' '.join(marks[:4]))}."
        instruction = "Write plain text, without any mark-up."
        yield case.report(message, 0.6, instruction=instruction)
    elif len(text) < SHORT_CHARACTERS and _HEADING.search(text):
        yield case.report("The text is short and has headings.", 0.15, blocks=False)


TEXT_HINTS: tuple[TextCheck, ...] = (
    check_language, check_ending, check_repetition, check_refusal, check_echo, check_leak,
    check_placeholders, check_markup,
)  # fmt: skip
