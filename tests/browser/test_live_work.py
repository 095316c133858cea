"""Live work in JupyterLab: a text as it is written, and a table whose kernel crashes."""

import os
import re
import signal

import pytest

from tests.browser.conftest import READY, Tab, expect

pytestmark = pytest.mark.browser
SETUP, WRITTEN, TEXT, TABLE, COUNTS = range(1, 6)
# Records each change of a cell's output.
NOTE_STATES = """(cell) => {
  window.states = [];
  const look = () => {
    const text = document.querySelectorAll(".jp-Notebook-cell")[cell]
      ?.querySelector(".jp-OutputArea")?.textContent ?? "";
    if (text !== window.states.at(-1)) window.states.push(text);
  };
  new MutationObserver(look).observe(
    document.body, { subtree: true, childList: true, characterData: true });
}"""


def test_streams_a_text_and_resumes_a_table_after_a_crash(tab: Tab) -> None:
    """Given a kernel that dies amid a table, when all cells run again, then no row is paid twice.

    Before that, the text of a run is shown in pieces while it is written.
    """
    page = tab.page
    tab.run_all("live.ipynb")
    page.evaluate(NOTE_STATES, WRITTEN)
    table = tab.output(TABLE)
    expect(table).to_contain_text(re.compile(r"[1-9]\d* of 60 rows"))
    text = tab.output(TEXT).locator(".toolkit-text").inner_text().strip()
    parts = [state for state in page.evaluate("window.states") if text[:12] in state]
    assert len([state for state in parts if text not in state]) >= 3, parts
    rows_shown = int(re.findall(r"(\d+) of 60 rows", table.inner_text())[-1])
    tab.shoot("table-before-the-kill", table)

    kernel = re.search(r"kernel (\d+)", tab.output(SETUP).inner_text())
    assert kernel is not None
    os.kill(int(kernel[1]), signal.SIGKILL)
    dialog = page.locator(".jp-Dialog", has_text="appears to have died")
    dialog.get_by_role("button", name="Ok").click()
    page.evaluate(READY)
    tab.command("notebook:run-all-cells", wait=False)
    counts = tab.output(COUNTS)
    expect(counts).to_contain_text("60 paid, 60 texts")
    expect(table).to_contain_text(re.compile(r"60 of 60 rows, \$[\d.]+ of \$1"))  # no formula
    cached = re.search(r"60 rows, (\d+) cached", counts.inner_text())
    assert cached is not None
    assert rows_shown <= int(cached[1]) <= 60  # its engine goes on as soon as it is opened
    tab.shoot("table-after-the-kill", table)
