"""Checks of what was left in a text by mistake: blanks to fill in, and mark-up."""

import re
from collections.abc import Iterator

from toolkit.planning.review.issues import ReviewIssue
from toolkit.planning.review.texts.case import TextCase, quote
from toolkit.planning.review.texts.word_lists import compile_phrases, find_phrase, fold_phrase

_BRACKETED = re.compile(
    r"(?<!\w)\[([^\[\]\n]{1,60})\](?![(:\[])"
    r"|［([^［］\n]{1,40})］"
    r"|\{\{\s{0,3}([^{}\n]{1,60})\}\}"
    r"|(?<!\w)\{([^\W\d][\w ]{1,40})\}"
    r"|\$\{([^{}\n]{1,40})\}"
    r"|<((?!https?:|/|mailto:|\s)[^<>\n@]{2,60})>"
    r"|[【〔〈]([^【】〔〕〈〉\n]{1,20})[】〕〉]"
    r"|[(（]([^()（）\n]{3,60})[)）]"
    r"|%([A-Z_]{3,30})%"
    r"|__([A-Z][A-Z ]{2,30})__"
)
_STOCK = re.compile(
    r"(?i:\blorem ipsum\b|\bdolor sit amet\b)"
    r"|(?<![\w.])(?:TODO(?=\s*[:(\]])|TBD|TBA|FIXME|TKTK)(?!\w)|\bX{3,}\b(?!\s*$)|[€$£]\s?X{2,}"
    r"|\bXX\s?(?:€|%|Uhr\b|euros?\b|:XX)|\bINSERT (?!INTO)[A-Z]{2,}"
    r"|\b(?:YOUR|ENTER|ADD)_(?:[A-Z]{2,}_?){1,4}\b"
    r"|\b000[- ]000[- ]0000\b|\b123-456-7890\b|\b(?:name|example)@example\.\w+"
    r"|\byour\.?(?:name|email)@(?!\S*\bexample\b)|(?<!\w)XX[.:/-]XX|[○〇◯×XＸ]{1,2}月[○〇◯×XＸ]{1,2}日|(?<![一二三四五六七八九十])[○〇◯]{2,}(?![一二三四五六七八九])"
)
# Forms of a date, and what a program would fill in.
_FORMAT = re.compile(
    r"\b(?:dd|tt|jj|gg)[./-]mm[./-](?:yyyy|jjjj|aaaa|yy|jj|aa)\b|(?<![\w%])%[sd](?!\w)"
    r"|(?<!\w)\{\d\}",
    re.I,
)
_CAPITALS = re.compile(r"(?<=[^\W\d_] )\$?[A-ZÀ-Þ]{4,}\b(?!\s*:)|\$[A-Z]{4,}\b")
_KEYS = re.compile(
    r"(?:ctrl|strg|alt|shift|tab|esc|enter|return|space|delete|entf|del|home|end|cmd|f\d{1,2}|\w)"
)
_ANNOUNCED = re.compile(r"to be (?:announced|confirmed|decided)|\bt\.?b\.?[acd]\b")
_BLANK = re.compile(r"_{4,}")
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.S)
_CITATION = re.compile(r"^[\d\s,–-]+$|^[xX✓ ]$|^\W*$|^[a-z]$")
_TAG_NAMES = (
    "a|abbr|b|blockquote|body|br|button|center|cite|code|dd|details|div|dl|dt|em|font|footer|form|"
    "h[1-6]|head|header|hr|html|i|iframe|img|input|kbd|li|link|main|mark|meta|nav|ol|p|pre|q|s|"
    "script|section|small|span|strong|style|sub|summary|sup|svg|table|tbody|td|th|thead|title|tr|"
    "u|ul|video|speak|voice|prosody|break|phoneme"
)
_HTML_TAG = re.compile(rf"</?(?:{_TAG_NAMES})(?:\s[^<>]{{0,200}})?/?>", re.I)
_ENTITY = re.compile(
    r"&(?:amp|lt|gt|quot|apos|nbsp|mdash|ndash|hellip|[lr][sd]quo|"
    r"[a-z]{1,2}(?:uml|acute|grave|circ|tilde|cedil|ring|lig)|#\d{2,6}|#x[0-9a-f]{2,6});",
    re.I,
)
_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}|(?<![\\\w:])\\[nrt](?![a-z]{3,})|\\n(?=[\s<&*A-Z-])")
_MARKDOWN = re.compile(
    r"^\s{0,3}#{1,6}\s+\S|\*\*[^*\n]+\*\*|(?<!\w)__[^_\n]+__(?!\w)"
    r"|(?<![*\w])\*[^*\s][^*\n]*\*(?![*\w])|`[^`\n]+`|^```|~~[^~\n]+~~"
    r"|!?\[[^\]\n]+\]\([^)\n]+\)|^\s*[-*+]\s+\S|^\s*>\s|^\s*\|.+\|\s*$",
    re.M,
)
_HEADING = re.compile(r"^#{1,6}\s+\S", re.M)
_QUOTED = re.compile(r"“[^”\n]*”|\"[^\"\n]*\"|`[^`\n]*`")


def check_placeholders(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that no blanks are left to be filled in."""
    if case.asks("templates") or case.is_code:
        return
    text = _CODE.sub(" ", case.sample)
    # A text may quote a blank that it speaks of, but not where most of it is quoted.
    unquoted = _QUOTED.sub(" ", text)
    text = unquoted if len(unquoted) * 2 > len(text) else text
    words = compile_phrases("placeholders")
    is_performed = case.asks("performed")
    found = [match.group() for match in _STOCK.finditer(text) if match.group() not in case.brief]
    if _ANNOUNCED.search(case.demands.folded):
        found = [one for one in found if one not in {"TBA", "TBD"}]
    if not case.asks("code"):
        found += [one for one in _FORMAT.findall(text) if one not in case.brief]
    found += _find_capitals(case, text)
    found += blanks if len(blanks := _BLANK.findall(text)) > 1 else []
    weak: list[str] = []
    aside: list[str] = []
    for match in _BRACKETED.finditer(text):
        inner = next(part for part in match.groups() if part is not None)
        folded = fold_phrase(inner).strip()
        if _CITATION.match(inner) or _HTML_TAG.fullmatch(match.group()) or match[0] in case.brief:
            continue
        section = compile_phrases("sections").match(folded)
        if section is not None and len(folded.split()) <= 4:
            continue
        if _KEYS.fullmatch(folded):
            continue
        match match[0][0]:
            case "(" | "（":
                is_blank = find_phrase("inserts", folded) is not None
                if not is_blank:
                    is_named = inner.islower() and _names_blank(folded)
                    aside += [match.group()] if is_named and len(folded.split()) <= 4 else []
                    continue
            case "【" | "〔" | "〈":
                is_blank = words.fullmatch(folded) is not None
                if not is_blank:
                    continue
            case first:
                is_blank = first == "%" or _names_blank(folded)
        is_blank = is_blank or match[0].startswith("{{")
        if not is_blank and is_performed:
            continue  # a stage direction
        # An abbreviation in brackets is none, words in capitals are.
        is_blank = is_blank or (inner.isupper() and re.search(r"[ _]", inner) is not None)
        (found if is_blank else weak).append(match.group())
    if len(weak) >= 3:
        found += weak
    if len(aside) >= 2:
        found += aside
    if found:
        message = f"The text has blanks to fill in: {quote(', '.join(found[:4]))}."
        told = "Leave no placeholders; use what is known and leave out what is not."
        yield case.report(message, 0.7, criterion="output_completeness", instruction=told)


def _find_capitals(case: TextCase, text: str) -> list[str]:
    """Find the names of blanks in capitals inside of sentences: `on DATE at TIME`."""
    words = compile_phrases("placeholders")
    found = [
        one
        for one in dict.fromkeys(_CAPITALS.findall(text))
        if one not in case.brief and words.fullmatch(fold_phrase(one.lstrip("$")))
    ]
    return found if len(found) > 1 else []


def _names_blank(folded: str) -> bool:
    """Tell whether words in brackets begin or end as the name of a blank does."""
    words = compile_phrases("placeholders")
    last = folded.rpartition(" ")[2]
    return words.match(folded) is not None or words.fullmatch(last) is not None


def check_markup(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that there is no mark-up but what was asked for, and that it is not escaped."""
    text = case.sample
    tags, entities = _HTML_TAG.findall(text), _ENTITY.findall(text)
    told = "Write plain text, without any mark-up."
    if case.asks("html"):
        if len(entities) >= 2 and not tags and not case.asks("encoding"):
            message = f"The mark-up is escaped: {quote(text)}."
            yield case.report(message, 0.7, instruction="Do not escape the mark-up.")
        return
    if case.is_code:
        return
    escapes = _ESCAPE.findall(_QUOTED.sub(" ", text))
    residue = [*entities, *escapes] if len(entities) + len(escapes) >= 2 or case.is_plain else []
    if residue:
        message = f"The text has escapes left in: {quote(', '.join(residue[:4]))}."
        yield case.report(message, 0.6, instruction=told)
    elif tags and (len(tags) >= 2 or case.is_plain) and not case.asks("markdown"):
        yield case.report(f"The text has tags left in: {quote(' '.join(tags[:4]))}.", 0.6,
                          instruction=told)  # fmt: skip
    elif case.is_plain and not case.asks("markdown") and (marks := _find_markdown(case, text)):
        message = f"What is spoken or shown has mark-up: {quote(', '.join(marks[:3]))}."
        yield case.report(message, 0.6, instruction=told)
    elif (
        len(text) < case.thresholds.heading_characters
        and _HEADING.search(text)
        and not case.asks("markdown")
    ):
        message = "The text has headings that nobody asked for."
        yield case.report(message, 0.15, blocks=False)


def _find_markdown(case: TextCase, text: str) -> list[str]:
    marks = [match.group().strip() for match in _MARKDOWN.finditer(text)]
    # A list that was asked for has its marks.
    is_list = "items" in case.demands.quantities or case.demands.asks("bullet_list")
    return [one for one in marks if not (is_list and one[:1] in "-*+" and one[1:2] == " ")]
