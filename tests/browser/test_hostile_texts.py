"""Texts of models, files and records that try to run a script, in every display and widget."""

import json
import re

import pytest
from nbconvert import HTMLExporter

from tests.browser.conftest import TIMEOUT_MS, Tab, expect
from tests.support.hostile_texts import PAYLOADS, SHORT, generate_hostile_texts

pytestmark = pytest.mark.browser
TEXTS = 100
FORMULA = r"A formula: $\frac{1}{2}$ and $$e^{i\pi}$$"
PRICE = "Price is $5 or $6."
# Typeset formulas outside the texts of models and outside tables of pandas.
TYPESET = """() => [...document.querySelectorAll("mjx-container")]
  .filter((formula) => !formula.closest(".toolkit-text, .dataframe"))
  .map((formula) => formula.parentElement.textContent.slice(0, 200))"""
# Pages of nbconvert load MathJax, mermaid and RequireJS from elsewhere.
NBCONVERT_ITSELF = ("file:", "https://cdnjs.cloudflare.com/", "https://unpkg.com/")
COUNT_HITS = """
  window.hits = [];
  window.planted = () => window.hits.push(new Error().stack);
  window.alert = window.planted;
"""
# The widget manager waits only 4 s for the states of all widgets, too short for a busy machine.
# Then it requests each widget separately, and ipykernel 7.4 leaves some of 500 requests unanswered.
WAIT_FOR_STATES = """
  const setTimer = window.setTimeout;
  window.setTimeout = (work, ms, ...rest) => setTimer(work, ms === 4000 ? 90000 : ms, ...rest);
"""
# Elements and attributes in the outputs that run a script or load something.
FIND_UNSAFE = """(outputs) => {
  const unsafe = [];
  const links = ["http:", "https:", "mailto:"];
  // JupyterLab itself links these addresses in plain text, and no browser opens them from a page.
  const plainLinks = [...links, "data:"];
  const refused = "script, iframe, frame, object, embed, link, meta, base, form, video, source";
  for (const output of document.querySelectorAll(outputs)) {
    for (const node of output.querySelectorAll("*")) {
      if (node.matches(refused)) unsafe.push(node.outerHTML.slice(0, 200));
      for (const { name, value } of node.attributes) {
        const isPlain = node.closest(".jp-RenderedText") !== null;
        const allowed = isPlain ? plainLinks : links;
        const place = node.localName === "a" ? allowed : ["data:", "blob:"];
        const isAddress = /^(xlink:)?href$|^src|^action$|^formaction$|^poster$/.test(name);
        const scheme = isAddress && URL.canParse(value) ? new URL(value).protocol : "";
        const isFine = !isAddress || value.startsWith("#") || place.includes(scheme);
        const isHandler = name.startsWith("on");
        if (isHandler || !isFine) unsafe.push(`${node.localName} ${name}=${value.slice(0, 200)}`);
      }
    }
  }
  return unsafe;
}"""


@pytest.fixture
def watched(tab: Tab) -> Tab:
    """A page that counts the scripts that ran, with a notebook of hostile texts."""
    texts = {
        "price": PRICE,
        "texts": [FORMULA, PRICE, *generate_hostile_texts(TEXTS)],
        "payloads": PAYLOADS,
        "short": SHORT,
    }
    file = tab.folder / "hostile_texts.json"
    file.write_text(json.dumps(texts), encoding="utf-8")
    tab.page.add_init_script(COUNT_HITS)
    tab.requests: list[str] = []
    tab.page.on("request", lambda request: tab.requests.append(request.url))
    return tab


def check_harmless(tab: Tab, outputs: str) -> None:
    """Check that no script ran, nothing was loaded, and no element could do so later."""
    assert tab.page.locator(outputs).count() > 0
    unsafe = tab.page.evaluate(FIND_UNSAFE, outputs)
    loaded = [url for url in tab.requests if "planted" in url and not url.startswith("data:")]
    hits = tab.page.evaluate("window.hits")
    assert (len(hits), len(loaded), len(unsafe)) == (0, 0, 0), (hits[:3], loaded[:3], unsafe[:9])


def wait_until_all_shown(tab: Tab) -> None:
    """Wait until the last cell has printed."""
    last = tab.page.locator(".jp-OutputArea-output", has_text=re.compile(r"^\s*all shown\s*$"))
    expect(last).to_have_count(1, timeout=3 * TIMEOUT_MS)


def test_hostile_texts_run_nothing_in_jupyterlab_and_its_saved_page(watched: Tab) -> None:
    """Given hostile texts in every display and widget of a notebook, then no script runs.

    No script runs in nbconvert's page of the saved notebook either. Formulas of a model's text are
    typeset, and prices stay as they are.
    """
    page = watched.page
    watched.run_all("hostile.ipynb")
    wait_until_all_shown(watched)
    expect(page.locator(".toolkit-text mjx-container").first).to_be_attached()
    expect(page.locator(".jp-RenderedMermaid img")).to_have_count(1)
    expect(page.locator(".toolkit-panel").first).to_be_attached()
    check_harmless(watched, ".jp-OutputArea-output")
    assert page.evaluate(TYPESET) == []
    expect(page.locator(".toolkit-text", has_text=PRICE).first).to_be_attached()
    watched.command("docmanager:save")
    saved = watched.folder / "hostile.ipynb"
    cells = json.loads(saved.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell["outputs"]]
    errors = [output["evalue"] for output in outputs if output["output_type"] == "error"]
    assert [text[:10] for text in errors] == ["NOT_FOUND:"], errors  # a cell shows this error
    html = saved.with_suffix(".html")
    html.write_text(HTMLExporter().from_filename(saved)[0], encoding="utf-8")
    watched.excused = NBCONVERT_ITSELF
    page.route(re.compile("^https:"), lambda route: route.abort())
    page.goto(html.as_uri())
    check_harmless(watched, ".jp-OutputArea-output")


def test_hostile_texts_run_nothing_in_voila(watched: Tab) -> None:
    """Given hostile texts in every display and widget of a dashboard, then no script runs.

    The line of a wait is a sentence, not a log.
    """
    watched.page.add_init_script(WAIT_FOR_STATES)
    watched.open_dashboard("hostile.ipynb")
    wait_until_all_shown(watched)
    line = watched.page.locator(".toolkit-progress").first
    expect(line).to_contain_text("✓ llm.generate@1 completed by openai in")
    assert "mono" not in line.evaluate("node => getComputedStyle(node).fontFamily").lower()
    expect(watched.page.locator(".toolkit-panel").first).to_be_attached()
    check_harmless(watched, ".jp-OutputArea-output")
