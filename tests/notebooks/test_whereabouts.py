"""A notebook knows where it is: the client of its magics, its world, and what it spent."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.notebooks.shells import NotebookShell, open_notebook_shell
from toolkit import AsyncClient, Client


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotebookShell]:
    """A shell with a client of its own, which no magic made."""
    with open_notebook_shell(tmp_path_factory.mktemp("where")) as opened:
        opened.run("del toolkit_client")
        opened.run("%load_ext toolkit")
        yield opened


def test_magics_use_the_notebooks_own_client(shell: NotebookShell) -> None:
    """Given a client of the notebook, then magics use it, and say so once."""
    first = shell.run("%%run llm.generate -q --to run\nTides")
    assert "The magics use `client`: Client in the sandbox, data in" in first
    assert "The magics use" not in shell.run("%%run llm.generate -q\nTides")
    client = shell.ip.user_ns["client"]
    assert client.runs.get(shell.ip.user_ns["run"].id).status == "completed"
    assert "toolkit_client" not in shell.ip.user_ns


def test_another_client_is_told_of(shell: NotebookShell, tmp_path: Path) -> None:
    """Given a client that is chosen, then magics say that they use another one now."""
    with Client.local(tmp_path / "other", sandbox=True) as other:
        shell.ip.user_ns["other"] = other
        shell.run("%connect --client other")
        assert "The magics use `toolkit_client`" in shell.run("%capabilities llm.generate")
        del shell.ip.user_ns["other"], shell.ip.user_ns["toolkit_client"]
    assert "The magics use `client`" in shell.run("%capabilities llm.generate")


def test_usage_says_what_was_spent(shell: NotebookShell) -> None:
    """Given work, then %usage tells where it was done, and what it came to here and today."""
    shown = shell.run("%usage")
    assert shown.startswith("in the sandbox, data in")
    assert "spent by this client" in shown
    assert "today (simulated)" in shown


def test_a_client_shows_where_it_is(shell: NotebookShell) -> None:
    """Given a client in a cell, then it shows its world, folder, account and spending."""
    bundle, _ = shell.ip.display_formatter.format(shell.ip.user_ns["client"])
    for words in ("in the sandbox", "data in", "account", "spent by this client"):
        assert words in bundle["text/html"]
    assert bundle["text/plain"].startswith("<Client in the sandbox, data in")


def test_only_own_work_counts_as_spent_here(tmp_path: Path) -> None:
    """Given two clients of one folder, one after the other, then each counts its own work."""
    with Client.local(tmp_path, sandbox=True) as first:
        run = first.runs.create("llm.generate", {"objective": "Tides"}).wait(progress=False)
        assert first.info().spent_here_usd == pytest.approx(run.cost_usd)
    with Client.local(tmp_path, sandbox=True) as second:
        told = second.info()
        assert (told.sandbox, told.spent_here_usd) == (True, 0.0)
        assert told.spent_today_usd == pytest.approx(run.cost_usd)
        assert str(tmp_path) in str(told)


async def test_the_async_client_knows_as_well(tmp_path: Path) -> None:
    """Given the async client, then it tells the same."""
    client = AsyncClient.local(tmp_path, sandbox=True)
    try:
        assert (await client.info()).world == "in the sandbox"
    finally:
        await client.aclose()
