"""Phrases of nine languages that checks of texts look for, from `phrases.toml`."""

import re
import tomllib
from functools import cache
from importlib import resources

from toolkit.media.text_parts import fold

_HEAD_CHARS = 80  # of a line, in which a head can stand
_UNSPACED = frozenset(("ja", "zh"))


@cache
def compile_phrases(name: str) -> re.Pattern[str]:
    """Compile a list of phrases in all languages to a pattern that prefers longer phrases."""
    source = resources.files(__package__) / "phrases.toml"
    lists: dict[str, str] = tomllib.loads(source.read_text(encoding="utf-8"))[name]
    patterns = []
    for code, text in lists.items():
        entries = [fold(" ".join(entry.split())) for entry in text.split(",")]
        ordered = sorted(filter(None, entries), key=len, reverse=True)
        joined = "|".join(re.sub(r"\\([(|)])", r"\1", re.escape(entry)) for entry in ordered)
        patterns.append(f"(?:{joined})" if code in _UNSPACED else rf"(?<!\w)(?:{joined})(?!\w)")
    return re.compile("|".join(patterns))


def match_source_head(line: str) -> re.Match[str] | None:
    """Match a heading such as “Sources” at the start of a line, in any case; None without one."""
    return compile_phrases("source_heads").match(fold(line[:_HEAD_CHARS]).lstrip("#*-_ "))
