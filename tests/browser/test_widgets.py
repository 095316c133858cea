"""The widgets in JupyterLab and Voilà, clicked and typed into by a person."""

import re

import httpx
import pytest

from tests.browser.conftest import TOKEN, Lab, Tab, expect
from tests.support.timing import PATIENCE_S, wait_until

pytestmark = pytest.mark.browser
CANARY = "sk-proj-c0ffee5d41402abc4b2a76b9719d911017c592"
# Notebook 7 requests settings of missing extensions, and fonts without permission.
NOTEBOOK_ITSELF = ("/static/notebook/",)
# Records from the beginning, because a short state may end before the page is at rest.
SEEN = """(() => {
  window.seen = new Set();
  const look = () => document.querySelectorAll("g[data-node]").forEach(
    (g) => window.seen.add(`${g.dataset.node} ${g.dataset.status}`));
  new MutationObserver(look).observe(document,
    { subtree: true, childList: true, attributes: true, attributeFilter: ["data-status"] });
})()"""


def test_widgets_work_in_jupyterlab(tab: Tab) -> None:
    """Given a notebook of all widgets, when it runs and a person uses them, then they respond.

    Nodes change while they run, and the keyboard reaches them. A hanging workflow can be cancelled,
    and an attempt that a person passes is delivered. A pasted key is cleared from the page and from
    the saved file. No rule of accessibility is broken, and no word is split between its letters.
    """
    page = tab.page
    page.add_init_script(SEEN)
    tab.run_all("widgets.ipynb")
    graph = tab.panel(2)
    node = graph.locator("g[data-node=words]")
    expect(node).to_have_attribute("data-status", "completed")
    expect(graph.locator("g[data-node=speech]")).to_have_attribute("data-status", "completed")
    assert {"words running", "words completed"} <= set(page.evaluate("[...window.seen]"))
    tab.wait_until_run()
    assert tab.find_broken_words() == []
    node.click()
    expect(graph.get_by_role("heading", name="words")).to_be_visible()
    expect(graph.get_by_text('"objective": "Sum it up"')).to_be_visible()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(graph.locator("g[data-node=facts]")).to_have_attribute("aria-pressed", "true")
    expect(graph.get_by_role("heading", name="facts")).to_be_visible()

    endless = tab.panel(3)
    expect(endless.locator("g[data-node=speech]")).to_have_attribute("data-status", "running")
    endless.get_by_role("button", name="Cancel").click()
    expect(endless.locator("g[data-node=speech]")).to_have_attribute("data-status", "cancelled")
    expect(endless.locator("g[data-node=card]")).to_have_attribute("data-status", "cancelled")

    setup = tab.panel(1)
    setup.get_by_role("button", name="Test").nth(2).click()
    expect(setup.get_by_text("google: works")).to_be_visible()
    name = setup.get_by_label("name of the secret")
    name.fill(CANARY)
    expect(name).to_have_value("")
    expect(setup.get_by_text("looks like a key")).to_be_visible()

    form = tab.panel(4)
    form.get_by_label("text *").fill("Hello, tide mill")
    form.get_by_role("button", name="Run").click()
    expect(form.locator("audio")).to_be_visible()

    runs = tab.panel(6)
    runs.get_by_label("sort by").select_option("status")
    expect(runs.locator("th[aria-sort=descending]")).to_have_text(re.compile("status"))

    editor = tab.panel(8)
    editor.locator("g[data-node=card]").click()
    editor.get_by_label("title *").fill("")
    expect(editor.get_by_text("card: input.title Field required")).to_be_visible()
    editor.get_by_label("export as").select_option("Python")
    expect(editor.get_by_text("wf.add('facts'")).to_be_visible()

    attempts = tab.panel(9)
    attempts.get_by_label("attempt to judge").select_option("Attempt 1")
    attempts.get_by_label("issues").fill("Nobody asked for its age.")
    attempts.get_by_role("button", name="Pass").click()
    delivered = attempts.get_by_role("columnheader", name="Attempt 1 ★ best ✓ delivered")
    expect(delivered).to_be_visible()
    expect(attempts.get_by_text("Nobody asked for its age.").first).to_be_visible()

    for _ in tab.list_themes():
        assert tab.find_violations() == []
    names = ("setup", "graph", "cancelled", "form", "review", "runs", "usage", "editor", "attempts")
    for cell, name in enumerate(names, start=1):
        tab.shoot(name, tab.panel(cell))

    tab.command("docmanager:save")
    saved = tab.folder / "widgets.ipynb"
    wait_until(lambda: "widget-view+json" in saved.read_text())
    assert CANARY[:12] not in saved.read_text()


def test_reruns_a_node_in_notebook_7(tab: Tab) -> None:
    """Given the workflow scenario, when a node is run again, then the graph shows the new run."""
    tab.excused = NOTEBOOK_ITSELF
    tab.run_all("03_workflows.ipynb", "notebooks")
    tab.wait_until_run()
    graph = tab.page.locator(".toolkit-panel").first
    graph.locator("g[data-node=card]").click()
    expect(graph.get_by_role("heading", name="card", exact=True)).to_be_visible()
    expect(graph.locator("img")).to_be_visible()
    graph.get_by_role("button", name="Run again from here").click()
    expect(graph.get_by_text("This is a new workflow")).to_be_visible()
    expect(graph.locator("g[data-node=card]")).to_have_attribute("data-status", "completed")
    expect(graph.locator("g[data-status=completed]")).to_have_count(6)
    tab.shoot("workflow-notebook-7", graph)


def test_dashboard_shows_and_reviews_a_task_in_voila(tab: Tab) -> None:
    """Given the dashboard as a page, when a task is started, then its graph and review appear."""
    page = tab.page
    tab.open_dashboard("dashboard.ipynb")
    page.get_by_role("button", name="Start").click()
    expect(page.locator("g[data-node=card]")).to_have_attribute("data-status", "completed")
    expect(page.get_by_role("columnheader", name="Attempt 1")).to_be_visible()
    expect(page.get_by_text("pass by checks")).to_be_visible()
    tab.shoot("voila")


def test_jupyter_proxies_the_service(lab: Lab) -> None:
    """Given a login to the notebook server, then `toolkit/v1` below it is a toolkit server."""
    pytest.importorskip("jupyter_server_proxy")
    with httpx.Client(base_url=lab.url, trust_env=False, timeout=PATIENCE_S) as person:
        person.get("/api", params={"token": TOKEN})  # a cookie, as a browser keeps it
        answer = person.get("/toolkit/v1/health")
    assert answer.is_success, f"{answer.status_code}: {lab.log.read_text()[-2000:]}"
    assert answer.json()["data"]["status"] == "ok"
