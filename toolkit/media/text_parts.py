"""The sentences, lines, paragraphs and items of a text, and how many words it has."""

import json
import re
import unicodedata

_DENSE = re.compile(r"[\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff]")
_THAI = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
_END = re.compile(r"(?<!\.)(?!\.{4,}\s*\d)[.!?…؟۔]+[\"'”’»)\]*_]*(?=\s|$)|[。！？]+[」』”’）)]*|।")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"“„«'])(?:[^\W\d_]|e\.g|i\.e|a\.m|p\.m|cf|ca|vs|no|nr|dr|mr|mrs|ms|prof|st|bzw|usw|z\.b|"
    r"d\.h|u\.a|etc|approx|fig|inc|jr|sr|sra|ing|av|art|abs|evtl|ggf|inkl|max|min|tel|vol|p|pp|ed|"
    r"min|std|uhr|jan|feb|apr|jun|jul|aug|sept|sep|okt|oct|nov|dez|dec|mt|ste)\.$",
    re.I,
)
_ORDINAL = re.compile(r"(?:^|[\s(])\d{1,2}\.$")
LIST_MARK = re.compile(
    r"^\s*(?:[-*•·–—▪◦‣・●○✓✔►]\s*(?=\S)|\(?\d{1,3}[.):、．](?!\d)\s*|[①-⑳]\s*|"
    r"\(?[a-zA-Z][.)]\s+|[٠-٩]{1,2}[.)\-]\s*|[一二三四五六七八九十]{1,2}[、.．]\s*)"
)
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s|^\s*\*\*[^*]+\*\*:?\s*$")
_URL = re.compile(r"https?://|www\.|doi\.org|\bdoi:", re.I)

_DROPPED = str.maketrans({"’": "'", ",": None, "،": None, "、": None, ";": None})
_FENCE = re.compile(r"^\s*```[\w+-]*\n(.*?)\n?```\s*$", re.S)


def fold(text: str) -> str:
    """Fold a text as phrases are compared: without case, accents and commas.

    >>> fold("I’m sorry, but I can’t. Désolé")
    "i'm sorry but i can't. desole"
    """
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in parts if not unicodedata.combining(char)).translate(_DROPPED)


def count_words(text: str) -> int | None:
    """Count the words of a text; return None for scripts without word breaks.

    >>> count_words("High water, twice a day")
    5
    """
    dense = len(_DENSE.findall(text)) + len(_THAI.findall(text))
    return None if dense * 3 > len(text) else sum(any(map(str.isalnum, w)) for w in text.split())


def count_characters(text: str) -> int:
    """Count the characters of a text; without spaces for scripts without word breaks.

    >>> count_characters("一二 三"), count_characters("ab c")
    (3, 4)
    """
    if _DENSE.search(text) and count_words(text) is None:
        return len(re.sub(r"\s", "", text))
    return len(text.strip())


def split_lines(text: str) -> list[str]:
    """Split a text into lines, without lines that have no letter and no digit."""
    return [line for line in text.splitlines() if any(map(str.isalnum, line))]


def split_paragraphs(text: str) -> list[str]:
    """Split a text at its blank lines; headings and single characters are left out."""
    blocks = [block.strip() for block in re.split(r"\n\s*\n", text)]
    return [part for part in blocks if part and not _HEADING.match(part) and len(part) > 1]


def split_sentences(text: str, *, has_ordinals: bool = True) -> list[str]:
    """Split a text into sentences; the last may lack its end, headings and sources are left out.

    Args:
        has_ordinals: whether a full stop behind a number can belong to it, as in "am 3. Mai".

    >>> split_sentences("Dr. Lee paid 3.50 euros. Was it enough? Yes")
    ['Dr. Lee paid 3.50 euros.', 'Was it enough?', 'Yes']
    """
    sentences: list[str] = []
    for line in text.splitlines():
        if not any(map(str.isalnum, line)) or _HEADING.match(line):
            continue
        if _URL.search(line) and not is_finished(line):  # of a list of sources
            continue
        start = 0
        for match in _END.finditer(line):
            head = line[max(start, match.start() - 10) : match.end()].rstrip("\"'”’»)]*_")
            after = line[match.end() : match.end() + 2].strip()
            is_stop = match.group()[0] == "."
            is_ordinal = has_ordinals and _ORDINAL.search(head) is not None
            is_short = is_stop and (is_ordinal or _ABBREVIATION.search(head) is not None)
            # "6 p.m. The doors" ends a sentence, "approx. 30" and "z. B. Tee" do not.
            is_pause = match.group().startswith(("..", "…")) and not after[:1].isupper()
            if ((is_short or is_pause) and line[match.end() :].strip()) or after[:1].islower():
                continue
            sentences.append(line[start : match.end()].strip())
            start = match.end()
        if any(map(str.isalnum, line[start:])):
            sentences.append(line[start:].strip())
    return sentences


def is_finished(text: str) -> bool:
    """Return whether a text ends as a sentence, a quotation or a bracket does."""
    return bool(re.search(r"[.!?…؟۔。！？।]['\"”’»)\]」』）*_]*$", text.rstrip()))


def split_items(text: str) -> list[str]:
    """List the first lines of the items of a list, without items that are indented under others."""
    marked = [line for line in text.splitlines() if LIST_MARK.match(line)]
    if not marked:
        return []
    indents = [len(line) - len(line.lstrip()) for line in marked]
    edge = min(indents)
    return [line for line, indent in zip(marked, indents, strict=True) if indent <= edge + 1]


def read_json(text: str) -> object:
    """Read the JSON of a text, which may be in a fenced code block.

    Raises:
        ValueError: the text is no JSON.
    """
    match = _FENCE.match(text)
    body = match.group(1) if match else text
    value: object = json.loads(body.strip().lstrip("\ufeff"))
    return value
