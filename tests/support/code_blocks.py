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
    """A block, and the reason why it is not run, if a comment above it gives a reason."""

    language: str
    code: str
    reason: str | None


def find_blocks(page: Path, language: str | None = None) -> Iterator[CodeBlock]:
    """Yield the blocks of a page in order, without Sphinx directives."""
    for match in FENCE.finditer(page.read_text(encoding="utf-8")):
        block = CodeBlock(match["language"], match["code"], match["reason"])
        if not block.language.startswith("{") and language in (None, block.language):
            yield block
