"""Lists, filters, tags, notes and comparisons in both themes of JupyterLab."""

import pytest

from tests.browser.conftest import Tab, expect

pytestmark = pytest.mark.browser


def test_shows_runs_and_comparisons_in_jupyterlab(tab: Tab) -> None:
    """Given runs with tags and notes, then lists, filters and comparisons are easy to read.

    No column is one word wide, the markup of a note is text, and contrast suffices in both themes.
    No rule of accessibility is broken, and no word is split between its letters.
    """
    page = tab.page
    tab.run_all("displays.ipynb")
    tab.wait_until_run()
    outputs = page.locator(".jp-Notebook-cell .jp-OutputArea")
    every, tagged, none, run, runs, workflows = (outputs.nth(n) for n in range(1, 7))

    expect(every.locator("caption")).to_have_text("3 runs: 2 completed, 1 failed, $0.0000702")
    expect(every.locator("tbody tr")).to_have_count(3)
    text = every.get_by_text("A line on ropes, and on all that is made of them")
    assert text.bounding_box()["height"] < 64, "a text has more than a few lines"
    expect(tagged.locator("caption")).to_contain_text("1 run,")
    expect(tagged.locator("tbody tr")).to_have_count(1)
    expect(tagged.get_by_text("a <b>bold</b> try")).to_be_visible()
    expect(none.get_by_text("no runs")).to_be_visible()
    expect(run.get_by_role("row", name="tags second")).to_be_visible()
    expect(runs.get_by_role("row", name="provider openai anthropic", exact=True)).to_be_visible()
    expect(runs.locator("del").first).to_have_text("Tides")
    expect(runs.locator("ins").first).to_have_text("Salt")
    expect(workflows.get_by_role("row", name="final input.objective")).to_be_visible()
    expect(workflows.get_by_role("row", name="tags")).to_have_count(0)  # a fork has the same tags

    for _ in tab.list_themes():
        assert tab.find_violations() == []
    for n, output in enumerate(outputs.all()[1:], start=1):
        tab.shoot(f"display-{n}", output)
    assert tab.find_broken_words() == []
