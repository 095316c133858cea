"""The `toolkit` command, run in this process."""

from typer.testing import CliRunner, Result

from toolkit.cli import app


def run_toolkit(*words: object, input: str | None = None) -> Result:
    """Run a command; its result holds the exception that it raised."""
    return CliRunner().invoke(app, [str(word) for word in words], input=input)


def say(*words: object) -> str:
    """Run a command that succeeds, and return its output."""
    result = run_toolkit(*words)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout
