"""Topics: the words that say what a request is about, without those around them."""

from collections.abc import Iterable, Sequence

from toolkit.planning.reading.spans.scan import Scan

MAX_TOPIC_CHARS = 300
_CUT_OWNERS = frozenset({"instruction", "negation", "measure", "artifact", "enumerator"})


def find_topic_text(scan: Scan, spans: Sequence[tuple[int, int]]) -> str:
    """Return the words of the stretches that a request is about."""
    parts = [trim_topic(scan, start, end) for start, end in spans]
    text = ", ".join(dict.fromkeys(part for part in parts if part))
    if len(text) > MAX_TOPIC_CHARS:
        text = text[:MAX_TOPIC_CHARS].rpartition(" ")[0] or text[:MAX_TOPIC_CHARS]
    return text


def names_source(scan: Scan, start: int, end: int) -> bool:
    """Tell whether words only say where to look something up: `in a reliable encyclopedia`."""
    kinds = ("fact", "thing.research", "article", "function_word", "filler", "language", "polite")
    is_said = any(scan.has(k, "fact", "thing.research") for k in range(start, end))
    return is_said and all(scan.has(k, *kinds) for k in range(start, end))


def join_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join stretches of words that touch each other."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def trim_topic(scan: Scan, start: int, end: int) -> str:
    """Strip a stretch of words of those that only lead to it or follow it."""
    start, end = trim_span(scan, start, end)
    text = " ".join(scan.text(start, end).split())
    if not text or "literal" not in scan.owners[start:end]:
        return text
    before, after = scan.gap(start).strip()[-1:], scan.gap_after(end).strip()[:1]
    opening = before if scan.owners[start] == "literal" else ""
    closing = after if scan.owners[end - 1] == "literal" else ""
    return f"{opening}{text}{closing}".strip()


def trim_span(scan: Scan, start: int, end: int) -> tuple[int, int]:
    """Return where a stretch of words begins and ends without those around it."""
    while start < end and (_is_edge(scan, start) or scan.owners[start] in _CUT_OWNERS):
        start += 1
    while end > start and (_is_last_edge(scan, end - 1) or scan.owners[end - 1] in _CUT_OWNERS):
        end -= 1
    return start, end


def _is_edge(scan: Scan, i: int) -> bool:
    return scan.has(i, "about", "join.", "polite") and scan.has(i, "function_word", "polite")


def _is_last_edge(scan: Scan, i: int) -> bool:
    return scan.has(i, "function_word", "polite", "join.")
