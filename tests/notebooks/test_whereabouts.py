"""The context of a notebook: the client of its magics, its data folder, and its costs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.notebooks.shells import NotebookShell, open_notebook_shell
from toolkit import AsyncClient, Client


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotebookShell]:
    """A shell with its own client, which no magic created."""
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


def test_magics_name_the_client_when_it_changes(shell: NotebookShell, tmp_path: Path) -> None:
    """Given a client that is chosen, then magics say that they use it now."""
    with Client.local(tmp_path / "other", sandbox=True) as client:
        shell.ip.user_ns["other"] = client
        shell.run("%connect --client other")
        assert "The magics use `toolkit_client`" in shell.run("%capabilities llm.generate")
        del shell.ip.user_ns["other"], shell.ip.user_ns["toolkit_client"]
    assert "The magics use `client`" in shell.run("%capabilities llm.generate")


def test_usage_shows_the_costs(shell: NotebookShell) -> None:
    """Given work, then %usage shows its data folder, and the costs of this client and of today."""
    output = shell.run("%usage")
    assert output.startswith("in the sandbox, data in")
    assert "spent by this client" in output
    assert "today (simulated)" in output


def test_a_client_shows_its_context(shell: NotebookShell) -> None:
    """Given a client in a cell, then it shows its mode, folder, account and costs."""
    bundle, _ = shell.ip.display_formatter.format(shell.ip.user_ns["client"])
    for words in ("in the sandbox", "data in", "account", "spent by this client"):
        assert words in bundle["text/html"]
    assert bundle["text/plain"].startswith("<Client in the sandbox, data in")


def test_counts_only_the_costs_of_the_client(tmp_path: Path) -> None:
    """Given two clients of one folder, one after the other, then each counts its own work."""
    with Client.local(tmp_path, sandbox=True) as first:
        run = first.runs.create("llm.generate", {"objective": "Tides"}).wait(progress=False)
        assert first.info().spent_here_usd == pytest.approx(run.cost_usd)
    with Client.local(tmp_path, sandbox=True) as second:
        info = second.info()
        assert (info.sandbox, info.spent_here_usd) == (True, 0.0)
        assert info.spent_today_usd == pytest.approx(run.cost_usd)
        assert str(tmp_path) in str(info)


async def test_the_async_client_has_the_same_info(tmp_path: Path) -> None:
    """Given the async client, then it has the same information."""
    async with AsyncClient.local(tmp_path, sandbox=True) as client:
        assert (await client.info()).world == "in the sandbox"
