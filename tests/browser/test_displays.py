"""Lists, filters, tags, notes and comparisons as a person sees them, by day and by night."""

import pytest

from tests.browser.conftest import Tab, expect

pytestmark = pytest.mark.browser
MIN_CONTRAST = 4.5  # of small text, by WCAG 2
# The texts of an output that stand out too little from what is behind them.
FAINT = """([outputs, least]) => {
  const parse = (text) => {
    const n = text.match(/[\\d.]+/g).map(Number);
    return text.startsWith("color(srgb") ? [...n.slice(0, 3).map((c) => c * 255), n[3] ?? 1]
      : [n[0], n[1], n[2], n[3] ?? 1];
  };
  const over = (top, below) => below.map((c, i) => top[i] * top[3] + c * (1 - top[3]));
  const behind = (one) => {
    const layers = [];
    for (let at = one; at; at = at.parentElement) {
      layers.push(parse(getComputedStyle(at).backgroundColor));
      if (layers.at(-1)[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((c) => c / 255)
      .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const faint = [];
  const written = "td, th, caption, p, ins, del";
  for (const one of outputs.flatMap((output) => [...output.querySelectorAll(written)])) {
    if (!one.innerText.trim()) continue;
    const below = behind(one), ink = over(parse(getComputedStyle(one).color), below);
    const [less, more] = [light(ink), light(below)].sort((a, b) => a - b);
    const contrast = (more + 0.05) / (less + 0.05);
    if (contrast < least) faint.push(`${one.tagName} ${one.innerText}: ${contrast.toFixed(1)}`);
  }
  return faint;
}"""


def test_experiments_in_jupyterlab(tab: Tab) -> None:
    """Given runs with tags and notes, then lists, filters and comparisons are read at a glance.

    No column is squeezed to a word a line, no markup of a note is drawn, and whatever is written
    stands out from what is behind it, by day and by night. Everybody can read it: no rule of
    accessibility is broken, nor a word between its letters.
    """
    page = tab.page
    tab.run_all("displays.ipynb")
    tab.wait_until_run()
    outputs = page.locator(".jp-Notebook-cell .jp-OutputArea")
    every, tagged, none, run, runs, workflows = (outputs.nth(n) for n in range(1, 7))

    expect(every.locator("caption")).to_have_text("3 runs: 2 completed, 1 failed, $0.0000702")
    expect(every.locator("tbody tr")).to_have_count(3)
    asked = every.get_by_text("A line on ropes, and on all that is made of them")
    assert asked.bounding_box()["height"] < 64, "a text goes over more than a few lines"
    expect(tagged.locator("caption")).to_contain_text("1 run,")
    expect(tagged.locator("tbody tr")).to_have_count(1)
    expect(tagged.get_by_text("a <b>bold</b> try")).to_be_visible()
    expect(none.get_by_text("no runs")).to_be_visible()
    expect(run.get_by_role("row", name="tags second")).to_be_visible()
    expect(runs.get_by_role("row", name="provider openai anthropic", exact=True)).to_be_visible()
    expect(runs.locator("del").first).to_have_text("Tides")
    expect(runs.locator("ins").first).to_have_text("Salt")
    expect(workflows.get_by_role("row", name="final input.objective")).to_be_visible()
    expect(workflows.get_by_role("row", name="tags")).to_have_count(0)  # a fork has them, too

    for theme in tab.list_themes():
        handles = [one.element_handle() for one in outputs.all()[1:]]
        assert page.evaluate(FAINT, [handles, MIN_CONTRAST]) == []
        assert tab.find_violations() == []
        for n, output in enumerate(outputs.all()[1:], start=1):
            tab.shoot(f"display-{n}-{theme}", output)
    assert tab.find_broken_words() == []
