"""Displays and widgets by the rules of WCAG 2.2 AA that a program can check, by day and by night.

axe-core is the judge: https://github.com/dequelabs/axe-core
"""

from typing import Any

import pytest

from tests.browser.conftest import Tab, playwright
from tests.browser.test_displays import THEMES
from tests.browser.test_widgets import wait_until_run

axe = pytest.importorskip("axe_playwright_python.sync_playwright")

pytestmark = pytest.mark.browser
expect: Any = playwright.expect
# JupyterLab itself draws pictures without a text for them, and outputs that scroll.
NAME_PICTURES = """() => document.querySelectorAll(".jp-RenderedSVG img, .jp-RenderedImage img")
  .forEach((picture) => { picture.alt = "named by the test"; })"""
LAB_OUTPUT = "jp-OutputArea-output"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


def find_violations(page: Any) -> list[str]:
    """Find what breaks a rule in the outputs of a notebook."""
    page.evaluate(NAME_PICTURES)
    response = axe.Axe().run(
        page,
        context={"include": [[f".{LAB_OUTPUT}"]]},
        options={"runOnly": RULES, "resultTypes": ["violations"]},
    )
    return [
        f"{rule['id']}: {node['html'][:300]}: {node['failureSummary'][:300]}"
        for rule in response.response["violations"]
        for node in rule["nodes"]
        if LAB_OUTPUT not in node["html"].partition(">")[0]
    ]


@pytest.mark.parametrize("notebook", ["displays.ipynb", "widgets.ipynb"])
def test_outputs_keep_the_rules_of_accessibility(tab: Tab, notebook: str) -> None:
    """Given a notebook of displays or of widgets, then everybody can read and use it.

    No word is broken between its letters.
    """
    tab.run_all(notebook)
    wait_until_run(tab)
    for title in THEMES.values():
        tab.command("apputils:change-theme", theme=title)
        expect(tab.page.locator("body")).to_have_attribute("data-jp-theme-name", title)
        expect(tab.page.locator("#jupyterlab-splash")).to_have_count(0)
        assert find_violations(tab.page) == []
    assert tab.find_broken_words() == []
