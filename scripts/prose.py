"""Measure how plain the English of the code, its tests and its pages is.

`python scripts/prose.py [PATH ...] [--show N]` prints the share of sentences that break each rule.
If a share is over its bar, it also prints up to N examples (default 3) and exits with 1. Without
a path it measures the product with its pages, then the tests. The patterns are blunt: a single hit
may be right, so only shares count.
"""

import argparse
import ast
import inspect
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

GROUPS = (
    [
        "toolkit",
        "docs",
        "notebooks",
        "benchmarks",
        "scripts",
        *sorted(map(str, Path().glob("*.md"))),
    ],
    ["tests"],
)
# Generated files repeat sentences of their sources. The rules' own patterns break the rules.
SKIPPED_PARTS = {"_sync", "reference", "build", "prose.py"}


class Rule(NamedTuple):
    """A way to write that readers must decode.

    Attributes:
        name: short name, as printed.
        pattern: regular expression that finds it in a sentence.
        bar: highest share of sentences, in percent.
        advice: what to write instead.
    """

    name: str
    pattern: str
    bar: float
    advice: str


RULES = (
    Rule(
        "a clause as subject or object",
        r"\b(what(?! (is|are|does|do|to|if|kind)\b[^.]*\?)|whoever|whatever|whichever|whose own"
        r"|who (asks?|has|have|waits?|looks?|reads?|calls?|begins?|writes?|stood)"
        r"|those (that|which|who|with|of)|(?<=[.;:,] )who\b)\b",
        3.0,
        "name the subject: 'the caller', 'the value', 'jobs that …'",
    ),
    Rule(
        "'one' as a noun",
        r"\b(?:an? (?:\w+ )?one|the (?:\w+ )?ones?|this one|that one|each one|another one|no one"
        r"|ones|of one's own|one's)\b(?![-‑]| (?:or|to one)\b)",
        1.5,
        "repeat the noun",
    ),
    Rule(
        "'none' for None",
        r"(?-i:[;,] none\b|\bnone (where|if|when)\b)",
        0.2,
        "'Returns None if …'",
    ),
    Rule(
        "'told', 'tells'",
        r"\b(told|tells?) (?!apart)(of|by|the|to|who|others|which|what|whether|how|them|it|that"
        r"|people|us|about)\b",
        0.5,
        "'report', 'return', 'state', 'notify', 'distinguish'",
    ),
    Rule(
        "'where' for 'if'",
        r"\bwhere (it|there|that|they|none|no|nothing|this|others?|not|one)"
        r" (is|are|has|have|was|were|does|do|can|cannot|would|fails?|stands?)\b"
        r"|\bwhere (nothing|none|nobody)\b",
        0.6,
        "'if' or 'when'",
    ),
    Rule(
        "help that is a fragment",
        r"(?m)^\s*`?[a-z_][a-z0-9_.]*`?(?:, `?[a-z_]+`?)*: (of|until|whose|after which|before which"
        r"|that|which|to be|as it|by which|from which|in which|for which)\b",
        0.3,
        "'name: noun phrase with its unit'",
    ),
    Rule(
        "old words",
        r"\b(beside|thereof|lest|whence|hither|be it|nobody else's|as far as|so many times"
        r"|in the moment in which|let go of|is at an end|stands? still|stood still|goes along"
        r"|comes? to (?:be|\d|what)|(?:is|are) held to|has to be|look(?:ed)? after)\b",
        0.5,
        "'next to', 'so that', 'when', 'must', 'total', 'validated against'",
    ),
)
NAMES = Rule(
    "variables named by a participle or pronoun",
    r"_*(told|given|asked|wanted|found|made|kept|known|one|each|some|others?|among|there|left"
    r"|said|taken|held|used|own|shown|chosen|noted|beside|here|gone|lent|named|meant|rest|whole"
    r"|stored|written|ended|done|begun|missed|lacking|unsure|sure|looked_for|given_back|of|more"
    r"|most|least|such|where|whose)_*",
    1.5,
    "a noun of the field: 'candidate', 'row', 'limit'",
)


def find_files(paths: list[str]) -> Iterator[Path]:
    """Find the sources, pages and notebooks in some paths."""
    for path in map(Path, paths):
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            is_text = file.suffix in {".py", ".md", ".ipynb"}
            if is_text and not SKIPPED_PARTS.intersection(file.parts):
                yield file


def read_source(source: str) -> Iterator[tuple[int, str]]:
    """Read the sentences in docstrings and other literals, and the comments, with their lines."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Constant(value=str(text)) if text.count(" ") > 2:
                yield node.lineno, re.sub(r"(?m)^\s*(>>>|\.\.\.).*$", "", inspect.cleandoc(text))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def read_page(page: str) -> Iterator[tuple[int, str]]:
    """Read the paragraphs, list items and table rows of a Markdown page, without its code."""
    page = re.sub(r"(?s)```.*?```", lambda code: "\n" * code[0].count("\n"), page)
    line = 1
    for block in re.split(r"(\n\s*\n|\n(?=[-*] )|\n(?=\|))", page):
        yield line, block
        line += block.count("\n")


def read_texts(file: Path) -> Iterator[tuple[int, str]]:
    """Read the texts of a file with their lines; a notebook counts the lines of its Markdown."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        return read_source(text)
    if file.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        pages = ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        return read_page("\n\n".join(pages))
    return read_page(text)


def split_sentences(text: str) -> Iterator[str]:
    """Split a text into sentences, table cells and lines of `Args` with at least three words."""
    text = re.sub(r"`[^`]*`", "`x`", text)
    ends = r"(?<=[.!?])\s+|\s\|\s|\n\s*\n|\n(?=\s*`?[a-z_][a-z0-9_.]*`?: )|\n(?=\s*[-*#])"
    yield from (part for part in re.split(ends, text) if len(part.split()) > 2)


def find_bindings(file: Path) -> Iterator[str]:
    """Find the variables, parameters and fields that a module binds."""
    if file.suffix != ".py":
        return
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                if name not in {"self", "cls"}:
                    yield f"{file}:{node.lineno}: {name}"


def print_share(rule: Rule, hits: list[str], total: int, shown: int) -> bool:
    """Print the share of a rule, with examples from all over if it is over its bar.

    Returns:
        Whether it is over its bar.
    """
    share = 100 * len(hits) / max(1, total)
    is_over = share > rule.bar
    verdict = "over" if is_over else "ok  "
    print(f"{verdict} {rule.name}: {len(hits)} of {total} = {share:.1f} %, bar {rule.bar} %")
    if is_over:
        print(f"     write {rule.advice}")
        step = max(1, len(hits) // max(1, shown))
        print("".join(f"     {hit}\n" for hit in hits[::step][:shown]), end="")
    return is_over


def measure(paths: list[str], shown: int) -> bool:
    """Measure some paths and print the share of each rule.

    Returns:
        Whether any share is over its bar.
    """
    files = list(find_files(paths))
    sentences = [
        (f"{file}:{line}", sentence)
        for file in files
        for line, text in read_texts(file)
        for sentence in split_sentences(text)
    ]
    print(f"{' '.join(paths)}: {len(sentences)} sentences")
    is_over = False
    for rule in RULES:
        pattern = re.compile(rule.pattern, re.IGNORECASE)
        hits = [
            f"{place}: {' '.join(sentence.split())[:150]}"
            for place, sentence in sentences
            if pattern.search(sentence)
        ]
        is_over |= print_share(rule, hits, len(sentences), shown)
    bindings = [binding for file in files for binding in find_bindings(file)]
    pattern = re.compile(NAMES.pattern)
    hits = [binding for binding in bindings if pattern.fullmatch(binding.rpartition(" ")[2])]
    return is_over | print_share(NAMES, hits, len(bindings), shown)


def main() -> int:
    """Measure the given paths, or the product and the tests."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--show", type=int, default=3, help="examples shown for each rule")
    options = parser.parse_args()
    groups = [options.paths] if options.paths else GROUPS
    verdicts = [measure(paths, options.show) for paths in groups]
    return int(any(verdicts))


if __name__ == "__main__":
    sys.exit(main())
