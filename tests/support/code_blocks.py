"""The fenced blocks of code in README and docs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n)?^```(?P<language>[^\n]*)\n(?P<code>.*?)^```$",
    re.M | re.S,
)


@dataclass(frozen=True)
class CodeBlock:
    """A block, and why it is not run, where a comment above it says so."""

    language: str
    code: str
    reason: str | None


def find_blocks(page: Path, language: str | None = None) -> Iterator[CodeBlock]:
    """The blocks of a page in order, those that are Sphinx's directives left out."""
    for found in FENCE.finditer(page.read_text(encoding="utf-8")):
        block = CodeBlock(found["language"], found["code"], found["reason"])
        if not block.language.startswith("{") and language in (None, block.language):
            yield block
