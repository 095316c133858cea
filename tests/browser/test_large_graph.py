"""A graph of many nodes and an empty cell in JupyterLab: keys, completion, and what is saved."""

import json
import re
from typing import Any

import pytest

from tests.browser.conftest import Tab, expect
from tests.support.timing import wait_until

pytestmark = pytest.mark.browser
NOTEBOOK = "large_graph.ipynb"
# The nodes that lie within the part of the graph that is seen.
SEEN = """(id) => {
  const [box, frame] = [`[data-node=${id}]`, ".tk-frame"].map(
    (one) => document.querySelector(one).getBoundingClientRect());
  return box.left >= frame.left && box.right <= frame.right
    && box.top >= frame.top && box.bottom <= frame.bottom;
}"""


def read_saved_picture(tab: Tab) -> dict[str, str]:
    """Save the notebook, and read the picture beside its widget from the file."""
    tab.command("docmanager:save")
    cells = json.loads((tab.folder / NOTEBOOK).read_text(encoding="utf-8"))["cells"]
    kept = [output["data"] for output in cells[1]["outputs"]]
    return {kind: "".join(text) for data in kept[1:] for kind, text in data.items()}


def is_focused(tab: Tab, name: str, value: str) -> bool:
    """Tell whether the keyboard is at a box."""
    found = tab.page.evaluate(f"document.activeElement.dataset.{name}")
    return bool(found == value)


def write(tab: Tab, text: str) -> Any:
    """Write into the last cell, by the keyboard, and return the list that Tab opens."""
    tab.page.keyboard.press("Escape")
    tab.cell(2).locator(".cm-content").click()
    for key in ("Control+A", "Delete"):
        tab.page.keyboard.press(key)
    tab.page.keyboard.type(text)
    tab.page.keyboard.press("Tab")
    return tab.page.locator(".jp-Completer:not(.lm-mod-hidden)")


def test_a_large_graph_by_the_keyboard_and_saved(tab: Tab) -> None:
    """Given 150 nodes in three groups, when keys are pressed, then they lead to every node.

    Saved in mid-run, the file has the picture of then; cancelled, and retried from another cell,
    the graph follows, and the file has the end. Opened without a kernel, it shows that. In the
    other cell, names are offered: brackets that JupyterLab closes by itself are not in the way.
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

    # Along the lines with arrows, into a group with Enter, through its nodes and out again.
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

    # What is searched for is found in a folded group, and opened.
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

    # Cancelled by its button, then retried by a person who types.
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
    tab.excused = ("/",)  # the page says in its console that the widget's model is gone
    tab.open(NOTEBOOK)
    expect(picture).to_be_visible()
    expect(picture).to_contain_text("50 completed")
    expect(picture).to_contain_text("$0.03")
    complaint = page.get_by_text(re.compile("Error displaying widget|Loading widget"))
    expect(complaint).to_be_hidden()
    tab.shoot("large-graph-saved")
