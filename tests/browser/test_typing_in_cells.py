"""What a person sees who types in JupyterLab: completion by real keys, mistakes, and results."""

from typing import Any

import pytest

from tests.browser.conftest import Tab, expect

pytestmark = pytest.mark.browser
EMPTY_CELL = 8


def write(tab: Tab, text: str) -> Any:
    """Write into the last cell, by the keyboard, and return the list that Tab opens."""
    cell = tab.cell(EMPTY_CELL)
    cell.locator(".cm-content").click()
    tab.page.keyboard.press("Control+A")
    tab.page.keyboard.press("Delete")
    tab.page.keyboard.type(text)
    tab.page.keyboard.press("Tab")
    return tab.page.locator(".jp-Completer:not(.lm-mod-hidden)")


def test_typing_in_jupyterlab(tab: Tab) -> None:
    """Given a notebook, when keys are pressed, then names are offered, and mistakes are pointed at.

    Brackets and quotes that JupyterLab closes by itself do not stand in the way.
    """
    tab.run_all("typing.ipynb")
    mistake = tab.output(7)
    expect(mistake).to_contain_text("node `card`: there is no field `titel`; did you mean `title`?")
    expect(mistake).to_contain_text("line 2 of the cell: client.workflows.submit(wf)")
    expect(tab.cell(2).locator(".toolkit-text")).to_contain_text("idal")
    expect(tab.cell(3).locator("table")).to_contain_text("A line on tides")
    expect(tab.output(4)).to_contain_text("in the sandbox")
    expect(tab.output(5)).to_contain_text("the default provider")
    expect(tab.cell(6).locator("table")).to_contain_text("objective, context?")
    for cell in (2, 7):
        tab.cell(cell).scroll_into_view_if_needed()
        tab.shoot(f"typing-cell-{cell}")

    offered = write(tab, 'client.runs.create("')
    expect(offered).to_contain_text("llm.generate")
    tab.shoot("typing-capabilities")
    tab.page.keyboard.press("Escape")
    expect(write(tab, 'client.runs.create("llm.generate", {"')).to_contain_text("objective")
    tab.shoot("typing-fields")
    tab.page.keyboard.press("Escape")
    offered = write(tab, 'client.runs.get("')
    expect(offered).to_contain_text("a\N{NO-BREAK SPACE}line", ignore_case=True)
    tab.shoot("typing-records")
    tab.page.keyboard.press("Enter")
    cell = tab.cell(EMPTY_CELL)
    expect(cell.locator(".cm-content")).to_contain_text('client.runs.get("run_')
    expect(write(tab, 'wf.add("card", "composition.layout", depends_on=["')).to_contain_text("copy")
    tab.page.keyboard.press("Escape")
