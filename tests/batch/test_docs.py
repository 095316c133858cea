"""The page docs/batch.md, run."""

import re
from pathlib import Path

import papermill  # noqa: F401 - it loads our engine, which is not to be half made then
import pytest

from toolkit.batch import papermill_engine
from toolkit.batch.kernel.sources import KernelSource
from toolkit.cli.errors import EXIT_CODES

DOCS = (Path(__file__).parents[2] / "docs" / "batch.md").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # papermill's own: it leaves its loop open
def test_the_examples_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given both Python blocks, when run, then the table and the notebooks are there."""
    source = KernelSource(fork=True, spares=1, renew_after=papermill_engine.RENEW_AFTER)
    monkeypatch.setattr(papermill_engine, "get_shared_source", lambda: source)
    monkeypatch.chdir(tmp_path)
    papermill_engine.register_engine()  # as its entry point does where this is installed
    names: dict[str, object] = {}
    try:
        for block in re.findall(r"^```python\n(.*?)^```", DOCS, re.M | re.S):
            exec(compile(block, "docs/batch.md", "exec"), names)
    finally:
        source.close()
    table = names["table"]
    assert list(table["grown"]) == [1.22, 1.49, 1.63, 2.65]  # type: ignore[index]
    assert (tmp_path / "grown.ipynb").is_file()


def test_the_exit_codes_are_those_of_the_command() -> None:
    """Given the table of exit codes, then all are in the one table of the command line."""
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", DOCS, re.M)}
    assert told == {0, 1, 2, 3, 130}
    assert told <= set(EXIT_CODES)
    assert f"after {papermill_engine.RENEW_AFTER} notebooks" in DOCS
