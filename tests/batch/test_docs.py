"""The examples and the numbers of docs/batch.md."""

import re
from pathlib import Path

import pytest

from toolkit.batch.papermill_engine import RENEW_AFTER
from toolkit.cli.errors import EXIT_CODES

DOCS = (Path(__file__).parents[2] / "docs" / "batch.md").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # papermill leaves its loop open
@pytest.mark.usefixtures("papermill_engine")
def test_runs_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given both Python blocks, when they run, then the table and the notebook exist."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```", DOCS, re.M | re.S):
        exec(compile(block, "docs/batch.md", "exec"), names)
    assert list(names["table"]["grown"]) == [1.22, 1.49, 1.63, 2.65]  # type: ignore[index]
    assert (tmp_path / "grown.ipynb").is_file()


def test_documents_existing_exit_codes() -> None:
    """Given the documented exit codes, then the command line has each of them."""
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", DOCS, re.M)}
    assert codes == {0, 1, 2, 3, 130}
    assert codes <= set(EXIT_CODES)
    assert f"after {RENEW_AFTER} notebooks" in DOCS
