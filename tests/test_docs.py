"""The code of README and docs, run: each page in its own folder, in the sandbox."""

import shlex
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from tests.support.code_blocks import PAGES, ROOT, CodeBlock, find_blocks
from toolkit import AsyncClient, Client
from toolkit.cli import app
from toolkit.settings import Settings

# Pages whose blocks another test runs, because they need more than a folder.
ELSEWHERE = {
    "docs/plugins.md": "tests/test_plugin_example.py installs the package that it shows",
    "docs/batch.md": "tests/batch/test_grid.py runs it with a notebook of its own",
    "docs/cassettes.md": "tests/cassettes/test_cassettes.py also checks the file that it writes",
    "docs/self-hosting.md": "tests/test_self_hosting.py starts the servers of the page",
    "docs/deploy.md": "tests/test_deploy.py starts the parts of the page",
}
SHOWN = {"text"}
NAMES = {page: str(page.relative_to(ROOT)) for page in PAGES}


@pytest.fixture
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty folder, in the sandbox."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLKIT_SANDBOX", "true")
    yield
    monkeypatch.undo()


def commands(text: str) -> Iterator[list[str]]:
    """Yield the commands of a bash block, without the parts after a pipe."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=";|")
        words.whitespace_split = True
        command: list[str] = []
        piped = False
        for word in words:
            if word == ";":
                yield command
                command, piped = [], False
            piped = piped or word == "|"
            if word != ";" and not piped:
                command.append(word)
        if command:
            yield command


def run_bash(block: CodeBlock) -> None:
    """Run the commands of a block in the command line."""
    for command in commands(block.code):
        assert command[0] == "toolkit", f"{command}: add `not run` and the reason above it."
        result = CliRunner().invoke(app, command[1:], catch_exceptions=False)
        assert result.exit_code == 0, f"{shlex.join(command)}: {result.output}"


def read_toml(block: CodeBlock) -> None:
    """Load a block as `toolkit.toml`."""
    assert set(tomllib.loads(block.code)) <= set(Settings.model_fields)
    file = Path("toolkit.toml")
    file.write_text(block.code, encoding="utf-8")
    Settings()
    file.unlink()


@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize("page", [p for p in PAGES if NAMES[p] not in ELSEWHERE], ids=NAMES.get)
def test_code_of_a_page_works(page: Path) -> None:
    """Given a page, when its blocks are run in their order, then none of them fails."""
    names: dict[str, object] = {}
    for block in find_blocks(page):
        if block.reason is not None or block.language in SHOWN:
            continue
        match block.language:
            case "python":
                exec(compile(block.code, page.name, "exec"), names)
            case "bash":
                run_bash(block)
            case "toml":
                read_toml(block)
            case "yaml":
                assert yaml.safe_load(block.code)
            case language:
                raise AssertionError(f"Unknown language of a block: `{language}`.")
    for value in names.values():
        if isinstance(value, Client):
            value.close()
        assert not isinstance(value, AsyncClient), "Close it on the page."


def test_skipped_blocks_have_reasons(tell: Callable[[str], None]) -> None:
    """Given the blocks that are not run, then each has its reason, and they are few."""
    untried = [
        (NAMES[page], block) for page in PAGES for block in find_blocks(page) if block.reason
    ]
    for name, block in untried:
        tell(f"{name}: not run, because it {block.reason}: {block.code.splitlines()[0]}")
    assert len(untried) <= 25
    for name, reason in ELSEWHERE.items():
        assert (ROOT / name).exists()
        assert (ROOT / reason.split()[0]).exists()
