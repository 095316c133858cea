"""The pass that takes out what only numbers the parts of an objective: `1.`, `b)`, `(ii)`, `*`."""

import re

from toolkit.planning.reading.spans.scan import Break, Scan

_LINE_MARK = re.compile(r"^[ \t]*(?:(\d{1,2}|[a-z]|[ivx]{1,4})[.)]|(\*))(?=[ \t]+\S)", re.M)
_INLINE_MARK = re.compile(r"(?:(?<=\s)|^)\((\d{1,2}|[a-z]|[ivx]{1,4})\)(?=\s+\S)")
_SERIES = (
    [str(n) for n in range(1, 51)],
    list("abcdefghijklmnopqrstuvwxyz"),
    ["i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"],
)


def cut_enumerators(scan: Scan) -> None:
    """Consume the marks of lists that count from the first on, and part what they number."""
    for pattern in (_LINE_MARK, _INLINE_MARK):
        marks = list(pattern.finditer(scan.objective))
        labels = [match.group(1) for match in marks]
        counts = any(labels == series[: len(labels)] for series in _SERIES)
        if len(marks) < 2 or not (counts or not any(labels)):
            continue
        for match in marks:
            for k, token in enumerate(scan.tokens):
                if match.start() <= token.start < match.end() and scan.is_free(k):
                    scan.consume(k, k + 1, "enumerator")
                    if k + 1 < len(scan):
                        scan.breaks[k + 1] = max(scan.breaks[k + 1], Break.CLAUSE)
