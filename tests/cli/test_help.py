"""The help and the version of the command line."""

import re
from collections.abc import Iterator
from importlib.metadata import version

import pytest
from click import Command
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

import toolkit
from toolkit.cli import app


def list_commands(
    command: Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Command]]:
    """Yield each command and group, with the words that name it."""
    yield path, command
    if isinstance(command, TyperGroup):
        for name, subcommand in command.commands.items():
            yield from list_commands(subcommand, (*path, name))


def strip_frame(text: str) -> str:
    """Remove the frame and all white space from a text."""
    return re.sub(r"[\s│╭╮╰╯─]+", "", text)


COMMANDS = dict(list_commands(get_command(app)))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_shows_every_text_whole(path: tuple[str, ...]) -> None:
    """Given any command, then its help shows each text: none is rendered as markup."""
    command = COMMANDS[path]
    environment = {"COLUMNS": "3000", "TERMINAL_WIDTH": "3000", "NO_COLOR": "1", "TERM": "dumb"}
    page = strip_frame(CliRunner().invoke(app, [*path, "--help"], env=environment).output)
    texts = [getattr(parameter, "help", None) or "" for parameter in command.params]
    texts += (command.help or "").split("\n\n")
    assert any(texts)
    for text in texts:
        assert strip_frame(text) in page


def test_prints_the_version() -> None:
    """Given `--version`, then the command prints the installed version, as the module has it."""
    result = CliRunner().invoke(app, ["--version"])
    assert result.stdout.split() == ["capability-toolkit", version("capability-toolkit")]
    assert toolkit.__version__ == version("capability-toolkit")
