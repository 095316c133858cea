"""The pass that finds words to be used as they are, and artifacts that are there already."""

from dataclasses import dataclass

from toolkit.planning.reading.spans.lists import split_items
from toolkit.planning.reading.spans.measures import read_quantity
from toolkit.planning.reading.spans.scan import ARTIFACT_ID, Break, Scan
from toolkit.planning.reading.words.grammar import get_grammar

_MAX_LITERAL_CHARS = 20_000
# Opening marks with their closing ones, of every language: who quotes does not look at rules.
_QUOTES = {
    "“": "”",
    "„": "“”",
    "«": "»",
    "»": "«",
    "‹": "›",
    "「": "」",
    "『": "』",
    "《": "》",
    "‘": "’",
    "‚": "‘’",
    '"': '"',
    "'": "'",
    "`": "`",
}
_CODE_FENCE = "```"
# Acts that work on words which may follow a colon without quotation marks.
_COLON_ACTS = (
    "act.translate",
    "act.summarize",
    "act.rewrite",
    "act.speak",
    "act.classify",
    "thing.speech",
)


@dataclass(frozen=True, slots=True)
class Literal:
    """Words to be used as they are.

    Attributes:
        text: the words, without the marks around them.
        start, end: its tokens.
        is_title: whether a word before it says that it is a title or a name.
    """

    text: str
    start: int
    end: int
    is_title: bool = False


def find_quotes(objective: str) -> list[tuple[int, int, str]]:
    """Find quoted passages: where each begins and ends with its marks, and the words between.

    >>> find_quotes("Say 'mind the step', it's wet")
    [(4, 19, 'mind the step')]
    """
    found, i = [], 0
    closers = _find_closers(objective)
    while i < len(objective):
        mark = objective[i]
        if objective.startswith(_CODE_FENCE, i):
            last = objective.find(_CODE_FENCE, i + 3)
            if last > 0:
                found.append((i, last + 3, objective[i + 3 : last].strip()))
                i = last + 3
                continue
        closing = _QUOTES.get(mark)
        if closing and _opens(objective, i):
            end = _find_closing(i, closing, closers)
            if end is not None:
                found.append((i, end + 1, objective[i + 1 : end].strip()))
                i = end
        i += 1
    return found


def _find_closers(objective: str) -> dict[str, list[int]]:
    """List the places of each closing mark once, so that no search runs twice over the text."""
    marks = set("".join(_QUOTES.values()))
    places: dict[str, list[int]] = {}
    for i in range(len(objective) - 1, -1, -1):
        mark = objective[i]
        if mark not in marks:
            continue
        # An apostrophe inside a word closes nothing.
        if mark in "'’" and (objective[i + 1 : i + 2].isalnum() or objective[i - 1].isspace()):
            continue
        places.setdefault(mark, []).append(i)
    return places


def _opens(text: str, i: int) -> bool:
    after = text[i + 1 : i + 2]
    if text[i] not in "'‘\"`":
        return True
    before = text[i - 1 : i]
    return bool(after.strip()) and not (before.isalnum() or before in {"'", "’"})


def _find_closing(start: int, closing: str, places: dict[str, list[int]]) -> int | None:
    ends = []
    for mark in closing:
        stack = places.get(mark, [])
        while stack and stack[-1] <= start + 1:
            stack.pop()
        if stack and stack[-1] - start <= _MAX_LITERAL_CHARS:
            ends.append(stack[-1])
    return min(ends, default=None)


def find_literals(scan: Scan) -> list[Literal]:
    """Find what is quoted, and what follows a colon after a word that announces it."""
    spans = find_quotes(scan.objective)
    literals = []
    starts = [token.start for token in scan.tokens]
    place = 0
    for start, end, text in spans:
        while place < len(starts) and starts[place] < start:
            place += 1
        last = place
        while last < len(starts) and starts[last] < end:
            last += 1
        if text and last > place:
            literals.append(Literal(text, place, last, is_named(scan, place, last)))
            scan.consume(place, last, "literal")
    return sorted([*literals, *_find_colon_literals(scan)], key=lambda one: one.start)


def find_artifacts(scan: Scan) -> list[tuple[int, str]]:
    """Find the ids of artifacts, with the token where each stands."""
    found = [(i, one.text) for i, one in enumerate(scan.tokens) if ARTIFACT_ID.match(one.text)]
    for i, _ in found:
        scan.consume(i, i + 1, "artifact")
    return found


def is_named(scan: Scan, place: int, last: int) -> bool:
    """Tell whether words about quoted ones say that they are a title or a name.

    Those stand before them; where a topic stands before its noun, also after: `「蜜柑」という題`.
    """
    for i in range(max(0, place - 4), place):
        for phrase in scan.phrases(i):
            if phrase.category == "title" and phrase.end == place:
                saying = get_grammar(scan.lexicon.code).saying
                return not scan.has(i, "act.speak") and scan.word(i) not in saying
    return scan.lexicon.word_order == "about-before" and scan.has(last, "title")


def _find_colon_literals(scan: Scan) -> list[Literal]:
    """Find `Translate into German: see you tomorrow`: all to the end of the paragraph."""
    for i in range(1, len(scan)):
        if scan.breaks[i] < Break.CLAUSE or not scan.gap(i).lstrip().startswith((":", "：")):
            continue
        if scan.gap(i).startswith("://"):
            continue
        if not scan.is_free(i):
            continue
        opening = scan.find_sentence_start(i - 1)
        is_title = any(
            phrase.category == "title" and phrase.end == i
            for k in range(max(opening, i - 4), i)
            for phrase in scan.phrases(k)
        )
        acts = any(scan.find(k, *_COLON_ACTS) for k in range(opening, i))
        if not is_title and "literal" in scan.owners[opening:i]:
            continue  # what is read is quoted already
        if not (acts or is_title) or _announces_items(scan, opening, i):
            continue
        labelled, _ = scan.names.find_label([scan.word(i - 1)])
        is_running = scan.has(i - 1, "thing.text", "unit.words", "unit.sentences")
        is_running = is_running and labelled in {None, "body", "text"}
        if is_title and not is_running:
            end = scan.find_sentence_end(i, Break.COMMA)
        else:
            end = scan.find_sentence_end(i) if not acts else _find_paragraph_end(scan, i)
        if any(owner for owner in scan.owners[i:end]):
            continue
        text = scan.objective[scan.tokens[i].start : _find_text_end(scan, end)].strip(" ,;\n")
        scan.consume(i, end, "literal")
        return [Literal(text, i, end, is_title)]
    return []


def _announces_items(scan: Scan, start: int, i: int) -> bool:
    """Tell whether a list follows the colon, of which each item is for one of what is asked."""
    items = len(split_items(scan, i, scan.find_sentence_end(i)))
    if items < 2:
        return False
    counted = any(read_quantity(scan, k)[0] == items for k in range(start, i))
    return counted or any(scan.find(k, "join.for_each") for k in range(start, i))


def _find_paragraph_end(scan: Scan, i: int) -> int:
    end = i + 1
    while end < len(scan) and "\n\n" not in scan.gap(end):
        end += 1
    return end


def _find_text_end(scan: Scan, end: int) -> int:
    return scan.tokens[end].start if end < len(scan) else len(scan.objective)
