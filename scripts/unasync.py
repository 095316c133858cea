"""Generate the sync client from the async client; `--check` only checks that it is current.

Tokens are replaced, not text, so strings and comments stay unchanged, except for names of classes
in strings. A substitution without a use is an error.
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
    """Return a name as the sync client has it."""
    if name in NAMES:
        USED.add(name)
        return NAMES[name]
    if name.startswith("Async") and name != "Async":
        return name.removeprefix("Async")
    return name


def convert_to_sync(source: str) -> str:
    """Convert an async module to a sync module."""
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
            # The indentation before the dropped method belongs to the method after it.
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
    """Return the text as ruff formats and sorts it."""
    for arguments in (["check", "--fix-only", "--select", "I,F401"], ["format"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--quiet", "--stdin-filename"]
        process = subprocess.run(  # noqa: S603 - our own linter on our own text
            [*command, str(TARGET / "module.py"), "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        text = process.stdout
    return text


def main() -> int:
    """Write the sync modules, or check them."""
    names = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py")}
    modules = {
        name: format_source(convert_to_sync(Path(SOURCE, name).read_text("utf-8")))
        for name in names
    }
    present = {
        str(path.relative_to(TARGET)): path.read_text("utf-8") for path in TARGET.rglob("*.py")
    }
    stale = sorted(name for name in {*modules, *present} if modules.get(name) != present.get(name))
    if "--check" not in sys.argv:
        for name in stale:
            target = TARGET / name
            if name not in modules:
                target.unlink()
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(modules[name], encoding="utf-8")
    unused = set(NAMES) - USED
    if unused:
        print(f"unused substitutions: {', '.join(sorted(unused))}")
        return 1
    if stale and "--check" in sys.argv:
        print(f"stale, run scripts/fix: {', '.join(stale)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
