"""The help of commands: whole, and of which version."""

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


def commands(
    command: Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Command]]:
    """Each command and group, with the words that name it."""
    yield path, command
    if isinstance(command, TyperGroup):
        for name, below in command.commands.items():
            yield from commands(below, (*path, name))


def words(text: str) -> str:
    """A text without what frames it, and without where its lines end."""
    return re.sub(r"[\s│╭╮╰╯─]+", "", text)


EVERY = dict(commands(get_command(app)))


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_help_shows_all_that_is_said(path: tuple[str, ...]) -> None:
    """Given any command, then its help has each text whole: none is taken for markup."""
    command = EVERY[path]
    environment = {"COLUMNS": "3000", "TERMINAL_WIDTH": "3000", "NO_COLOR": "1", "TERM": "dumb"}
    shown = words(CliRunner().invoke(app, [*path, "--help"], env=environment).output)
    told = [getattr(each, "help", None) or "" for each in command.params]
    told += (command.help or "").split("\n\n")
    assert len([text for text in told if text]) >= 1
    for text in told:
        assert words(text) in shown


def test_the_version_is_told() -> None:
    """When asked for the version, then the command and the module tell the installed one."""
    shown = CliRunner().invoke(app, ["--version"])
    assert shown.stdout.split() == ["capability-toolkit", version("capability-toolkit")]
    assert toolkit.__version__ == version("capability-toolkit")
