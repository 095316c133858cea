"""The `toolkit` command, run in this process."""

from typer.testing import CliRunner, Result

from toolkit.cli import app


def run_toolkit(*words: object) -> Result:
    """Run a command; its result has what it raised."""
    return CliRunner().invoke(app, [str(each) for each in words])


def say(*words: object) -> str:
    """Run a command that succeeds, and return what it prints."""
    shown = run_toolkit(*words)
    assert shown.exit_code == 0, (shown.output, shown.exception)
    return shown.stdout
