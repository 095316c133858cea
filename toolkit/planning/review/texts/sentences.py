"""The sentences, lines, paragraphs and items of a text, and how many words it has."""

import re

_DENSE = re.compile(r"[\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff]")
_THAI = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
_END = re.compile(r"(?<!\.)(?!\.{4,}\s*\d)[.!?…؟۔]+[\"'”’»)\]*_]*(?=\s|$)|[。！？]+[」』”’）)]*|।")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[^\W\d_]|\d{1,2}|e\.g|i\.e|a\.m|p\.m|cf|ca|vs|no|nr|dr|mr|mrs|ms|prof|st|bzw|usw|z\.b|"
    r"d\.h|u\.a|etc|approx|fig|inc|jr|sr|sra|ing|av|art|abs|evtl|ggf|inkl|max|min|tel|vol|p|pp|ed|"
    r"min|std|uhr|jan|feb|apr|jun|jul|aug|sept|sep|okt|oct|nov|dez|dec|mt|ste)\.$",
    re.I,
)
LIST_MARK = re.compile(
    r"^\s*(?:[-*•·–—▪◦‣・●○✓✔►]\s*(?=\S)|\(?\d{1,3}[.):、．](?!\d)\s*|[①-⑳]\s*|"
    r"\(?[a-zA-Z][.)]\s+|[٠-٩]{1,2}[.)\-]\s*|[一二三四五六七八九十]{1,2}[、.．]\s*)"
)
_NUMBER_MARK = re.compile(r"^\s{0,3}\(?(\d{1,3})[.)、．:](?!\d)\s*\S")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s|^\s*\*\*[^*]+\*\*:?\s*$")
_URL = re.compile(r"https?://|www\.|doi\.org|\bdoi:", re.I)


def count_words(text: str) -> int | None:
    """Count the words of a text; none for scripts without word breaks.

    >>> count_words("High water, twice a day")
    5
    """
    dense = len(_DENSE.findall(text)) + len(_THAI.findall(text))
    return None if dense * 3 > len(text) else sum(any(map(str.isalnum, w)) for w in text.split())


def count_characters(text: str) -> int:
    """Count the characters of a text; without spaces where words are not set apart by them.

    >>> count_characters("一二 三"), count_characters("ab c")
    (3, 4)
    """
    if _DENSE.search(text) and count_words(text) is None:
        return len(re.sub(r"\s", "", text))
    return len(text.strip())


def split_lines(text: str) -> list[str]:
    """Split a text into its lines that hold something."""
    return [line for line in text.splitlines() if any(map(str.isalnum, line))]


def split_paragraphs(text: str) -> list[str]:
    """Split a text at its blank lines; headings and lines of addresses are no paragraphs."""
    blocks = [block.strip() for block in re.split(r"\n\s*\n", text)]
    return [one for one in blocks if one and not _HEADING.match(one) and len(one) > 1]


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences; the last may lack its end, headings and sources are left out.

    >>> split_sentences("Dr. Lee paid 3.50 euros. Was it enough? Yes")
    ['Dr. Lee paid 3.50 euros.', 'Was it enough?', 'Yes']
    """
    found: list[str] = []
    for line in text.splitlines():
        if not any(map(str.isalnum, line)) or _HEADING.match(line) or _URL.search(line):
            continue
        start = 0
        for match in _END.finditer(line):
            head = line[max(start, match.start() - 10) : match.end()].rstrip("\"'”’»)]*_")
            after = line[match.end() : match.end() + 2].strip()
            is_short = match.group()[0] == "." and _ABBREVIATION.search(head)
            # "6 p.m. The doors" ends a sentence, "approx. 30" and "z. B. Tee" do not.
            if (is_short and line[match.end() :].strip()) or after[:1].islower():
                continue
            found.append(line[start : match.end()].strip())
            start = match.end()
        if any(map(str.isalnum, line[start:])):
            found.append(line[start:].strip())
    return found


def is_finished(text: str) -> bool:
    """Tell whether a text ends as a sentence, a quotation or a bracket does."""
    return bool(re.search(r"[.!?…؟۔。！？।]['\"”’»)\]」』）*_]*$", text.rstrip()))


def split_items(text: str) -> list[str]:
    """Split a list into its items: those at its left edge, where others stand under them."""
    marked = [line for line in text.splitlines() if LIST_MARK.match(line)]
    if not marked:
        return []
    indents = [len(line) - len(line.lstrip()) for line in marked]
    edge = min(indents)
    return [line for line, indent in zip(marked, indents, strict=True) if indent <= edge + 1]


def read_numbering(text: str) -> list[int]:
    """Read the numbers that lines of a list begin with."""
    found = (_NUMBER_MARK.match(line) for line in text.splitlines())
    return [int(match.group(1)) for match in found if match]
