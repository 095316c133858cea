"""Make the sync client from the async one; `--check` only says whether it is current.

Tokens are replaced, not text, so strings and comments stay as they are, but for the names of
classes in strings. A substitution that is used nowhere is a mistake, and fails.
"""

import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

CLIENT = Path(__file__).parent.parent / "toolkit" / "client"
SOURCE, TARGET = CLIENT / "_async", CLIENT / "_sync"
HEADER = "# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.\n"
NAMES = {
    "_async": "_sync",
    "AsyncBaseTransport": "BaseTransport",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "aclose": "close",
    "aclosing": "closing",
    "aiter_bytes": "iter_bytes",
    "aread": "read",
    "asyncio": "time",
}
DROPPED = ("async", "await")
USED: set[str] = set()


def rename_for_sync(name: str) -> str:
    """A name as the sync client has it."""
    if name in NAMES:
        USED.add(name)
        return NAMES[name]
    if name.startswith("Async") and name != "Async":
        return name.removeprefix("Async")
    return name


def convert_to_sync(source: str) -> str:
    """The sync module for an async one."""
    out: list[tokenize.TokenInfo] = []
    lines = source.splitlines(keepends=True)
    result: list[str] = []
    skip_until: int | None = None
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        out.append(token)
    position = (1, 0)
    for i, token in enumerate(out):
        between = _between(lines, position, token.start)
        position = token.end
        if skip_until is not None:
            # The indentation before the dropped method is there for the one after it.
            if token.type == tokenize.DEDENT and token.start[1] <= skip_until:
                skip_until = None
            continue
        if token.type == tokenize.NAME and token.string in DROPPED:
            result.append(between)
            position = out[i + 1].start
            continue
        if token.string == "def" and out[i + 1].string == "__await__":
            skip_until = token.start[1]
            continue
        text = rename_for_sync(token.string) if token.type == tokenize.NAME else token.string
        if token.type == tokenize.STRING:
            text = re.sub(r"\bAsync(?=[A-Z])", "", text)
        result.append(between + text)
    return HEADER + "".join(result)


def _between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    if start[0] == end[0]:
        return lines[start[0] - 1][start[1] : end[1]] if start[0] <= len(lines) else ""
    first = lines[start[0] - 1][start[1] :]
    middle = "".join(lines[start[0] : end[0] - 1])
    last = lines[end[0] - 1][: end[1]] if end[0] <= len(lines) else ""
    return first + middle + last


def format_source(text: str) -> str:
    """The text as ruff formats and sorts it."""
    for arguments in (["check", "--fix-only", "--select", "I,F401"], ["format"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--quiet", "--stdin-filename"]
        done = subprocess.run(  # noqa: S603 - our own linter on our own text
            [*command, str(TARGET / "module.py"), "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        text = done.stdout
    return text


def main() -> int:
    """Write the sync modules, or check them."""
    names = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py")}
    made = {
        name: format_source(convert_to_sync(Path(SOURCE, name).read_text("utf-8")))
        for name in names
    }
    there = {
        str(path.relative_to(TARGET)): path.read_text("utf-8") for path in TARGET.rglob("*.py")
    }
    stale = sorted(name for name in {*made, *there} if made.get(name) != there.get(name))
    if "--check" not in sys.argv:
        for name in stale:
            target = TARGET / name
            if name not in made:
                target.unlink()
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(made[name], encoding="utf-8")
    unused = set(NAMES) - USED
    if unused:
        print(f"substitutions that nothing uses: {', '.join(sorted(unused))}")
        return 1
    if stale and "--check" in sys.argv:
        print(f"stale, run scripts/fix: {', '.join(stale)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
