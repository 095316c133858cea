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


def test_folds_reasoning_above_the_text(tab: Tab) -> None:
    """Given a run that reasons, then a fold above its text has the reasoning, closed at first.

    A reader who opens the fold keeps it open while the text grows, and at the end. The card of a
    run has its own fold, and a tool call is shown by its name with its arguments.
    """
    tab.run_all("reasoning.ipynb")
    written = tab.output(1)
    fold = written.locator("details")
    thought = fold.get_by_text("say what matters.")
    expect(written.locator("table")).to_contain_text("idal")
    expect(fold).to_have_count(1)
    expect(thought).to_be_hidden()
    tab.shoot("reasoning-folded", written)
    fold.locator("summary").click()
    expect(thought).to_be_visible()
    before = len(written.locator("table").inner_text())
    growth = "(n) => document.querySelector('.toolkit-progress table').innerText.length > n"
    tab.page.wait_for_function(growth, arg=before + 40)
    expect(thought).to_be_visible()
    upper, lower = fold.bounding_box(), written.locator(".toolkit-progress").bounding_box()
    assert upper["y"] + upper["height"] <= lower["y"]
    tab.shoot("reasoning-open", written)
    expect(written).to_contain_text("✓ llm.generate@1 completed by anthropic")
    expect(thought).to_be_visible()
    asked = tab.output(2)
    expect(asked).to_contain_text('forecast {"city": "Rome", "days"')
    tab.shoot("reasoning-tool", asked)
    expect(asked).to_contain_text("✓ llm.generate@1 completed by anthropic")
    expect(asked.locator("details")).to_have_count(2)
    expect(asked.get_by_text("say what matters.").first).to_be_hidden()
    tab.shoot("reasoning-card", asked)
