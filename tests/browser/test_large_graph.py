"""A graph of many nodes and an empty cell in JupyterLab: keys, completion, and the saved file."""

import json
import re
from typing import Any

import pytest

from tests.browser.conftest import Tab, expect
from tests.support.timing import wait_until

pytestmark = pytest.mark.browser
NOTEBOOK = "large_graph.ipynb"
# Whether a node is within the visible part of the graph.
SEEN = """(id) => {
  const [box, frame] = [`[data-node=${id}]`, ".tk-frame"].map(
    (selector) => document.querySelector(selector).getBoundingClientRect());
  return box.left >= frame.left && box.right <= frame.right
    && box.top >= frame.top && box.bottom <= frame.bottom;
}"""


def read_saved_picture(tab: Tab) -> dict[str, str]:
    """Save the notebook, and read the picture of its graph from the file."""
    tab.command("docmanager:save")
    cells = json.loads((tab.folder / NOTEBOOK).read_text(encoding="utf-8"))["cells"]
    picture = cells[1]["outputs"][1]["data"]
    return {kind: "".join(text) for kind, text in picture.items()}


def is_focused(tab: Tab, name: str, value: str) -> bool:
    """Return whether a box has the focus."""
    focused: str | None = tab.page.evaluate(f"document.activeElement.dataset.{name}")
    return focused == value


def write(tab: Tab, text: str) -> Any:
    """Type into the last cell, and return the list of completions after Tab."""
    tab.page.keyboard.press("Escape")
    tab.cell(2).locator(".cm-content").click()
    for key in ("Control+A", "Delete"):
        tab.page.keyboard.press(key)
    tab.page.keyboard.type(text)
    tab.page.keyboard.press("Tab")
    return tab.page.locator(".jp-Completer:not(.lm-mod-hidden)")


def test_keyboard_completion_and_saving_of_a_large_graph(tab: Tab) -> None:
    """Given 150 nodes in three groups, when keys are pressed, then they reach every node.

    The file saved in mid-run has the picture of that time. After a cancellation and a retry from
    another cell, the graph and the file show the end, also without a kernel. The other cell
    completes names, in spite of brackets that JupyterLab closes by itself.
    """
    page = tab.page
    tab.run_all(NOTEBOOK)
    graph = tab.panel(1)
    picture = page.locator("div[class*=toolkit-twin-]")  # hidden while the graph is alive
    last = graph.locator("g[data-group=say0]")
    expect(last).to_contain_text("49 of 50 done, 1 running")
    expect(graph.locator("g[data-node]")).to_have_count(0)
    expect(picture).to_contain_text("149 completed")
    wait_until(lambda: "1 running, 149 completed" in read_saved_picture(tab)["text/html"])
    assert "image/png" in read_saved_picture(tab)

    # Arrows follow the edges, Enter opens a group, and Escape leaves it.
    graph.locator("g[data-group=read0]").focus()
    page.keyboard.press("ArrowRight")
    assert is_focused(tab, "group", "sum0")
    page.keyboard.press("Enter")
    expect(graph.locator("g[data-group=sum0]")).to_have_attribute("aria-expanded", "true")
    expect(graph.locator("g[data-node]")).to_have_count(50)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert is_focused(tab, "node", "sum1")
    page.keyboard.press("ArrowRight")
    assert is_focused(tab, "group", "say0")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Escape")
    assert is_focused(tab, "group", "sum0")
    page.keyboard.press("Enter")
    expect(graph.locator("g[data-node]")).to_have_count(0)

    # A search opens the folded group of a match.
    page.keyboard.press("/")
    page.keyboard.type("say7")
    expect(graph.get_by_text("1 of 150")).to_be_visible()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert is_focused(tab, "node", "say7")
    assert page.evaluate(SEEN, "say7")
    page.keyboard.press("Enter")
    expect(graph.get_by_role("heading", name="say7")).to_be_visible()
    expect(graph.locator("g[data-node=say7]")).to_have_attribute("aria-pressed", "true")
    node = graph.locator("g[data-node=say7]")
    before = node.bounding_box()["width"]
    page.keyboard.press("+")
    assert node.bounding_box()["width"] > before
    expect(graph.locator(".tk-map")).to_be_visible()
    tab.shoot("large-graph-node")
    page.keyboard.press("0")
    expect(graph.locator(".tk-map")).to_be_hidden()
    tab.shoot("large-graph-fit")

    # The button cancels the workflow, and code in a cell retries it.
    graph.get_by_role("button", name="Cancel").click()
    expect(node).to_have_attribute("data-status", "cancelled")
    expect(write(tab, 'client.runs.create("')).to_contain_text("llm.generate")
    tab.shoot("typing-capabilities")
    expect(write(tab, 'client.runs.create("llm.generate", {"')).to_contain_text("objective")
    expect(write(tab, 'wf.add("more", "llm.generate", depends_on=["')).to_contain_text("read0")
    expect(write(tab, 'client.workflows.get("')).to_contain_text("reviews")
    tab.shoot("typing-records")
    page.keyboard.press("Enter")
    expect(tab.cell(2).locator(".cm-content")).to_contain_text('client.workflows.get("wfl_')
    write(tab, "faults.clear(); client.workflows.retry(run.id).id")
    page.keyboard.press("Shift+Enter")
    expect(node).to_have_attribute("data-status", "completed")
    expect(graph.get_by_text(re.compile("150 of 150 nodes"))).to_be_visible()
    expect(picture).to_contain_text("150 completed")
    wait_until(lambda: "150 completed" in read_saved_picture(tab)["text/html"])

    tab.command("kernelmenu:shutdown", wait=False)
    expect(page.get_by_text("No Kernel").first).to_be_visible()
    tab.excused = ("/",)  # the page logs that the widget's model is gone
    tab.open(NOTEBOOK)
    expect(picture).to_be_visible()
    expect(picture).to_contain_text("50 completed")
    expect(picture).to_contain_text("$0.03")
    complaint = page.get_by_text(re.compile("Error displaying widget|Loading widget"))
    expect(complaint).to_be_hidden()
    tab.shoot("large-graph-saved")
