"""Checks of a text's form: data that parses, poems by their lines, lists, tables, one line."""

import ast
import csv
import json
import re
import warnings
from collections.abc import Iterator

from pydantic import JsonValue

from toolkit.planning.review.issues import ReviewIssue
from toolkit.planning.review.texts.case import TextCase, quote
from toolkit.planning.review.texts.sentences import (
    count_words,
    is_finished,
    split_items,
    split_lines,
    split_paragraphs,
)
from toolkit.planning.review.texts.word_lists import compile_phrases

_FENCE = re.compile(r"^\s*```[\w+-]*\n(.*?)\n?```\s*$", re.S)
_ASKED_AS = (
    r"\b(?:as|in|into|valid|only|just|als|en|come|como|em|format|formato|nur|solo|apenas)"
    r"(?: an?| valid| einem?| einer| ein| une?| el| il)? json\b"
    r"|\bjson[ -](?:array|object|list|format|only|document|liste|objekt|tableau|objet|objeto|lista)"
    r"|json(?:形式|格式|で|数组|对象|配列|オブジェクト)|[用以成]\s?json|(?:بصيغة|صيغة) json"
)
_JSON_ASKED = re.compile(_ASKED_AS)
_CSV_ASKED = re.compile(_ASKED_AS.replace("json", "csv") + r"|^\W*(?:\w+\W+)?csv\b")
_PYTHON = re.compile(r"^\s*(?:def|class|import|from|@\w|if __name__|async def)\b", re.M)
_ACROSTIC = re.compile(r"[\"“«„'‘]?\b([A-ZÄÖÜÑÇÉÈÀÁÍÓÚ]{3,14})\b[\"”»“'’]?")
_ROW = re.compile(r"^\s*\|.*\|\s*$|\t", re.M)
_SYLLABLE = re.compile(r"[aeiouy]+")
# A brief for one line begins with it: "Write a slogan", "Eine Überschrift für".
_OPENS_ONE_LINE = re.compile(rf"(?:\W*\w+){{0,3}}\W*{compile_phrases('one_line').pattern}")
MAX_PARSED = 200_000  # characters that are parsed
# Poems of a fixed number of lines.
POEM_LINES = {"haiku": 3, "limerick": 5, "sonnet": 14}
_HAIKU_SYLLABLES = (9, 24)  # 17, counted roughly
_HAIKU_WORDS, _HAIKU_SIGNS = 20, 30  # of one that stands on a line


def check_json(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text is JSON where that was asked for, and has what its schema requires."""
    schema = case.item.node.input.get("output_schema")
    body = _strip_fence(case.text)
    is_asked = isinstance(schema, dict) or bool(_JSON_ASKED.search(case.demands.folded))
    looks = body[:1] in {"{", "["}
    if not is_asked and not ("json" in case.demands.folded and looks):
        return
    if len(body) > MAX_PARSED:
        return
    try:
        value: JsonValue = json.loads(body)
    except (ValueError, RecursionError) as error:
        where = getattr(error, "lineno", None)
        message = (
            f"The text is no JSON{f' (line {where})' if looks and where else ''}: {quote(body)}."
        )
        yield case.report(
            message, 0.9, criterion="technical_success", instruction="Answer with valid JSON only."
        )
        return
    lacking = _find_lacking(value, schema) if isinstance(schema, dict) else ""
    if lacking:
        yield case.report(f"The JSON lacks `{lacking}`.", 0.8, criterion="technical_success")


def _find_lacking(value: JsonValue, schema: dict[str, JsonValue]) -> str:
    required = schema.get("required")
    if not isinstance(required, list) or not isinstance(value, dict):
        return "" if schema.get("type") != "object" or isinstance(value, dict) else "an object"
    return next((str(name) for name in required if name not in value), "")


def _strip_fence(text: str) -> str:
    match = _FENCE.match(text) if len(text) <= MAX_PARSED else None
    return (match.group(1) if match else text).strip().lstrip("\ufeff")


def check_code(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that Python parses, and that CSV has as many fields in each row."""
    asked = case.demands.folded
    body = _strip_fence(case.text)
    if len(body) > MAX_PARSED:
        return
    if "python" in asked and _PYTHON.search(body) and "```" not in body:
        fault = _find_syntax_fault(body)
        if fault and _is_mostly_code(body):
            message = f"The Python does not parse ({fault})."
            yield case.report(message, 0.8, criterion="technical_success")
    is_prose = "\n" not in body and is_finished(body) and _CSV_ASKED.search(asked) is not None
    if is_prose:
        message = f"The text is no CSV: {quote(body)}."
        yield case.report(
            message, 0.8, criterion="technical_success", instruction="Answer with CSV only."
        )
    elif re.search(r"\bcsv\b", asked) and body.count("\n") >= 1 and "```" not in body:
        try:
            rows = [len(row) for row in csv.reader(body.splitlines()) if row]
        except csv.Error:
            rows = [0, 1]
        if len(set(rows)) > 1 or max(rows, default=0) < 2:
            message = f"The rows of the CSV have {min(rows)} to {max(rows)} fields."
            yield case.report(message, 0.7, criterion="technical_success")


def _find_syntax_fault(body: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(body)
    except SyntaxError as error:
        return f"line {error.lineno}"
    except (ValueError, RecursionError, MemoryError):
        return "it is no text of a program"
    return ""


def _is_mostly_code(body: str) -> bool:
    """Tell whether code stands by itself: prose around it has no fence."""
    lines = split_lines(body)
    prose = [line for line in lines if re.match(r"^[A-Z][a-z]+ [a-z]+ [a-z ]+[.:]$", line)]
    return len(prose) * 4 < len(lines)


def check_poem(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a poem of a fixed form has as many lines, and that an acrostic spells its word."""
    stanzas = split_paragraphs(case.sample)
    lines = split_lines(case.sample)
    # A title, or the name of whoever wrote it, may stand by itself.
    core = max(stanzas, key=len, default="")
    for name, number in POEM_LINES.items():
        if not case.demands.asks(name) or "items" in case.demands.quantities:
            continue
        counts = {len(lines), len(lines) - 1, len(split_lines(core))}
        one_line = len(lines) == 1 and number == 3 and _is_one_line_haiku(lines[0])
        if number not in counts and not one_line:
            message = f"A {name} has {number} lines, this text {len(lines)}."
            told = f"A {name} has exactly {number} lines."
            yield case.report(message, 0.8, instruction=told)
        elif name == "haiku" and case.language.code == "en" and count_words(core):
            syllables = sum(_count_syllables(word) for word in core.split())
            if not _HAIKU_SYLLABLES[0] <= syllables <= _HAIKU_SYLLABLES[1]:
                message = f"A haiku has about 17 syllables, this text {syllables}."
                yield case.report(message, 0.6, instruction="A haiku has 5, 7 and 5 syllables.")
        return
    if case.demands.asks("acrostic"):
        yield from _check_acrostic(case, lines)


def _is_one_line_haiku(line: str) -> bool:
    """Tell whether a line is as short as a haiku, and in parts where words are set apart."""
    words = count_words(line)
    if words is None:
        return len(line) <= _HAIKU_SIGNS
    return words <= _HAIKU_WORDS and len(re.split(r"[/|,;.…—–]", line)) >= 3


def _count_syllables(word: str) -> int:
    """Count the syllables of an English word, roughly."""
    letters = re.sub(r"[^a-z]", "", word.lower())
    if not letters:
        return 0
    silent = letters.endswith("e") and not letters.endswith(("le", "ee")) and len(letters) > 3
    return max(1, len(_SYLLABLE.findall(letters)) - silent)


def _check_acrostic(case: TextCase, lines: list[str]) -> Iterator[ReviewIssue]:
    words = {match.group(1) for match in _ACROSTIC.finditer(case.brief)}
    initials = "".join(re.sub(r"^[\W_]+", "", line)[:1] for line in lines).upper()
    if words and not any(word in initials for word in words):
        word = sorted(words, key=len)[-1]
        message = f"The first letters of the lines spell {quote(initials)}, not `{word}`."
        told = f"The first letters of the lines are to spell {word}."
        yield case.report(message, 0.8, instruction=told)


def check_layout_form(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a list is a list, a table has rows, and that a slogan is one line."""
    demands, text = case.demands, case.sample
    if not text.strip() or case.is_code:
        return
    lines = split_lines(text)
    if (
        demands.asks("table")
        and not demands.asks("contents")
        and not demands.asks("templates")
        and len(_ROW.findall(text)) < 2
        and text.count("<tr") < 2
    ):
        yield case.report("The text has no table.", 0.7, instruction="Lay it out as a table.")
    elif demands.asks("bullet_list") and len(split_items(text)) < 2 and len(lines) < 2:
        yield case.report("The text is no list.", 0.6, instruction="Write it as a list.")
    elif _OPENS_ONE_LINE.match(demands.folded) and not demands.quantities and len(lines) > 1:
        has = count_words(text) or len(text) // 2
        if has > case.thresholds.one_line_words:
            message = f"One line was asked for, the text has {len(lines)}."
            yield case.report(message, 0.6, instruction="Write one line only.")
