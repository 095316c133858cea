"""The progress of a wait in a notebook: rows that change, then one line."""

import pytest

from tests.browser.conftest import Tab, expect

pytestmark = pytest.mark.browser
# Records each state of the displays of progress.
SEEN = """() => {
  window.seen = [];
  const look = () => document.querySelectorAll(".toolkit-progress").forEach((display) => {
    const text = display.innerText;
    if (window.seen.at(-1) !== text) window.seen.push(text);
  });
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true });
}"""


def test_shows_the_progress_of_a_wait(tab: Tab) -> None:
    """Given a wait for a workflow, then its nodes are shown while they run.

    Texts appear while they are written. Of many nodes some are shown, and all are counted. An
    interrupt leaves one line, and the work goes on.
    """
    tab.run_all("progress.ipynb")
    tab.page.evaluate(SEEN)
    few = tab.output(1)
    expect(few).to_contain_text("1 running")
    tab.shoot("progress-few", few)
    expect(few).to_contain_text("✓ few nodes completed: 4 nodes in")
    expect(few.locator("table")).to_have_count(0)
    many = tab.output(2)
    expect(many).to_contain_text("of 41 done")
    tab.shoot("progress-many", many)
    expect(many).to_contain_text("✓ many nodes completed: 41 nodes in")
    endless = tab.output(3)
    expect(endless.locator("tr")).to_have_count(3)
    tab.shoot("progress-endless", endless)
    tab.command("notebook:interrupt-kernel")
    expect(endless).to_contain_text('the work goes on. To wait again: client.workflows.get("wfl_')
    expect(endless).to_contain_text("… no end goes on: 0 of 3 nodes done, $0")
    tab.shoot("progress-interrupted")
    seen = tab.page.evaluate("window.seen")
    texts = {text.rpartition("\n")[2] for text in seen if text.startswith("… few nodes")}
    assert len({text for text in texts if "ides" in text}) > 1, "a text came in one piece"
    counted = [text for text in seen if text.startswith("… many nodes")]
    assert any("s left" in text for text in counted)
    assert max(text.count("running") for text in counted) <= 13
