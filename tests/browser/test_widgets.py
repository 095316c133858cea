"""The widgets in JupyterLab and Voilà, clicked and typed into as a person does."""

import re

import pytest

from tests.browser.conftest import TIMEOUT_MS, TOKEN, Tab, expect
from tests.support.timing import wait_until

pytestmark = pytest.mark.browser
CANARY = "sk-proj-c0ffee5d41402abc4b2a76b9719d911017c592"
# Notebook 7 reads settings of extensions that it does not have, and fonts that it may not read.
NOTEBOOK_ITSELF = ("/static/notebook/",)
PLACES = pytest.mark.parametrize(
    ("place", "excused"),
    [("lab/tree", ()), ("notebooks", NOTEBOOK_ITSELF)],
    ids=["jupyterlab", "notebook 7"],
)
# Looks from the first moment on: what is short may be over before the page is at rest.
SEEN = """(() => {
  window.seen = new Set();
  const look = () => document.querySelectorAll("g[data-node]").forEach(
    (g) => window.seen.add(`${g.dataset.node} ${g.dataset.status}`));
  new MutationObserver(look).observe(document,
    { subtree: true, childList: true, attributes: true, attributeFilter: ["data-status"] });
})()"""


def test_a_workflow_in_jupyterlab(tab: Tab) -> None:
    """Given a notebook of all widgets, when it is run and they are used, then they answer.

    Nodes change while they run; the keyboard reaches them; a workflow that hangs is cancelled; a
    key that is pasted is gone, from the page and from the saved file. Everybody can use them: no
    rule of accessibility is broken, nor a word between its letters.
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
    for _ in tab.list_themes():
        assert tab.find_violations() == []
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
    expect(setup.get_by_text("looks like a key itself")).to_be_visible()

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

    for theme in tab.list_themes():
        assert tab.find_violations() == []
        names = ("setup", "graph", "cancelled", "form", "review", "runs", "usage", "editor")
        for cell, name in enumerate(names, start=1):
            tab.shoot(f"{name}-{theme}", tab.panel(cell))

    tab.command("docmanager:save")
    saved = tab.folder / "widgets.ipynb"
    wait_until(lambda: "widget-view+json" in saved.read_text())
    assert CANARY[:12] not in saved.read_text()


def test_the_first_scenario(tab: Tab) -> None:
    """Given the first scenario, when all of it is run, then no cell fails."""
    tab.run_all("01_social_card.ipynb")
    tab.wait_until_run()
    tab.shoot("first-scenario")


@PLACES
def test_a_node_is_run_again_by_its_button(tab: Tab, place: str, excused: tuple[str, ...]) -> None:
    """Given the scenario of workflows, when a node is chosen and run again, then that is seen."""
    tab.excused = excused
    tab.run_all("03_workflows.ipynb", place)
    tab.wait_until_run()
    graph = tab.page.locator(".toolkit-panel").first
    graph.locator("g[data-node=card]").click()
    expect(graph.get_by_role("heading", name="card", exact=True)).to_be_visible()
    expect(graph.locator("img")).to_be_visible()
    graph.get_by_role("button", name="Run again from here").click()
    expect(graph.get_by_text("This is a new workflow")).to_be_visible()
    expect(graph.locator("g[data-node=card]")).to_have_attribute("data-status", "completed")
    expect(graph.locator("g[data-status=completed]")).to_have_count(6)
    tab.shoot(f"workflow-{place.replace('/', '-')}", graph)


def test_a_person_judges_in_jupyterlab(tab: Tab) -> None:
    """Given the attempts of a task, when a person passes another one, then that is told."""
    tab.run_all("06_tasks_and_reviews.ipynb")
    tab.wait_until_run()
    review = tab.page.locator(".toolkit-panel").first
    for title in ("Attempt 1", "Attempt 2", "Attempt 3 ★ best ✓ delivered"):
        expect(review.get_by_role("columnheader", name=title)).to_be_visible()
    for theme in tab.list_themes():
        tab.shoot(f"attempts-{theme}", review)
    assert tab.find_broken_words() == []
    review.get_by_label("of attempt").select_option("Attempt 2")
    review.get_by_label("issues").fill("Nobody asked for its age.")
    review.get_by_role("button", name="Pass").click()
    delivered = review.get_by_role("columnheader", name="Attempt 2 ★ best ✓ delivered")
    expect(delivered).to_be_visible()
    expect(review.get_by_text("Nobody asked for its age.").first).to_be_visible()
    tab.shoot("judged", review)


def test_a_dashboard_in_voila(tab: Tab) -> None:
    """Given the dashboard as a page, when a task is started, then it is watched and reviewed."""
    page = tab.page
    tab.open_dashboard("dashboard.ipynb")
    page.get_by_role("button", name="Start").click()
    expect(page.locator("g[data-node=card]")).to_have_attribute("data-status", "completed")
    expect(page.get_by_role("columnheader", name="Attempt 1")).to_be_visible()
    expect(page.get_by_text("pass by checks")).to_be_visible()
    tab.shoot("voila")


def test_the_service_beside_the_notebooks(tab: Tab) -> None:
    """Given a person logged in to the notebook server, then `toolkit/v1` beside it is a server."""
    pytest.importorskip("jupyter_server_proxy")
    tab.page.goto(f"{tab.lab.url}/api?token={TOKEN}")
    answer = tab.page.request.get(f"{tab.lab.url}/toolkit/v1/health", timeout=2 * TIMEOUT_MS)
    assert answer.ok, f"{answer.status}: {tab.lab.log.read_text()[-2000:]}"
    assert answer.json()["data"]["status"] == "ok"
