"""Phrases of nine languages that checks of texts look for, from `phrases.toml`."""

import re
import tomllib
from functools import cache
from importlib import resources

from toolkit.media.text_parts import fold

_UNSPACED = frozenset(("ja", "zh"))


@cache
def compile_phrases(name: str) -> re.Pattern[str]:
    """Compile the phrases of a list, of all languages; the longest of two that begin alike wins."""
    source = resources.files(__package__) / "phrases.toml"
    lists: dict[str, str] = tomllib.loads(source.read_text(encoding="utf-8"))[name]
    patterns = []
    for code, text in lists.items():
        entries = [fold(" ".join(entry.split())) for entry in text.split(",")]
        ordered = sorted(filter(None, entries), key=len, reverse=True)
        joined = "|".join(re.sub(r"\\([(|)])", r"\1", re.escape(entry)) for entry in ordered)
        patterns.append(f"(?:{joined})" if code in _UNSPACED else rf"(?<!\w)(?:{joined})(?!\w)")
    return re.compile("|".join(patterns))
