"""One JupyterLab for all browser tests, and the chromium of the system."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.forked_programs import install_forked_kernel
from tests.support.ports import free_port
from tests.support.timing import PATIENCE_S, wait_until

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")

expect: Any = playwright.expect
ROOT = Path(__file__).parent.parent.parent
NOTEBOOKS = (ROOT / "notebooks", Path(__file__).parent / "notebooks")
SCREENSHOTS = ROOT / "build" / "screenshots"
TIMEOUT_MS = 90_000  # long, because a busy machine is slow
TOKEN = "browser-tests"
# Voilà's own page requests icons and mermaid, and works without them.
VOILA_ITSELF = ("https://cdn.jsdelivr.net/npm/@fortawesome/", "https://cdnjs.cloudflare.com/")
ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic",
    "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
)  # fmt: skip
# Resolves once the kernel has stayed the same, connected and idle for a while, because JupyterLab
# may start a kernel and continue with another. The status of a kernel is unknown until a cell runs
# if the kernel was idle before the page listened, as forked kernels can be.
READY = """async () => {
  const app = window.jupyterapp;
  await app.restored;
  const pause = () => new Promise((go) => setTimeout(go, 50));
  while (!app.shell.currentWidget?.sessionContext) await pause();
  const panel = app.shell.currentWidget;
  await panel.revealed; await panel.context.ready; await panel.sessionContext.ready;
  let since = performance.now(), known = null;
  while (performance.now() - since < 600) {
    await pause();
    const kernel = panel.sessionContext.session?.kernel;
    const idle = ["idle", "unknown"].includes(kernel?.status);
    const fine = idle && kernel.connectionStatus === "connected";
    if (!fine || kernel.id !== known) { since = performance.now(); known = kernel?.id; }
  }
}"""
# Words whose letters are on more than one line.
BROKEN_WORDS = """() => {
  const broken = [];
  for (const output of document.querySelectorAll(".jp-OutputArea-output")) {
    const texts = document.createTreeWalker(output, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      for (const word of texts.currentNode.data.matchAll(/[A-Za-z]{2,24}/g)) {
        const range = document.createRange();
        range.setStart(texts.currentNode, word.index);
        range.setEnd(texts.currentNode, word.index + word[0].length);
        const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
        if (lines.size > 1) broken.push(word[0]);
      }
    }
  }
  return broken;
}"""
# JupyterLab itself draws pictures without an alternative text.
NAME_PICTURES = """() => document.querySelectorAll(".jp-RenderedSVG img, .jp-RenderedImage img")
  .forEach((picture) => { picture.alt = "named by the test"; })"""
LAB_OUTPUT = "jp-OutputArea-output"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


@dataclass
class Lab:
    """A JupyterLab server with a folder, in which each test has a subfolder."""

    url: str
    folder: Path
    log: Path

    def ask(self, path: str, method: str = "GET") -> Any:
        """Send a request to the server; return its answer."""
        options = {"params": {"token": TOKEN}, "trust_env": False, "timeout": PATIENCE_S}
        answer = httpx.request(method, f"{self.url}/{path}", **options).raise_for_status()
        return answer.content and answer.json()


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A server with all its files in its own folder, and kernels that start without imports."""
    home = tmp_path_factory.mktemp("lab")
    folder = home / "notebooks"
    folder.mkdir()
    settings = home / "settings" / "@jupyterlab"
    for name, values in {
        "notebook-extension/tracker": {"windowingMode": "none"},
        "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    }.items():
        file = settings / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    (home / "config").mkdir()
    shutil.copy(ROOT / "binder" / "jupyter_server_config.json", home / "config")
    port = free_port()
    folders = {
        "JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "IPYTHONDIR": "ipython",
        "JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    }  # fmt: skip
    environment = {**os.environ, **{name: str(home / part) for name, part in folders.items()}}
    environment["TOOLKIT_CPU_WORKERS"] = "1"  # each takes a second to start
    command = [
        sys.executable, "-m", "jupyterlab", "--allow-root", "--no-browser", "--ip=127.0.0.1",
        f"--port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}",
        f"--ServerApp.root_dir={folder}", "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True", "--KernelManager.transport=ipc",
        "--LanguageServerManager.autodetect=False",  # each page would start programs to look
    ]  # fmt: skip
    with ExitStack() as stack:
        # It holds the kernels' sockets, whose paths have at most 107 characters.
        runtime = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lab-")))
        environment["JUPYTER_RUNTIME_DIR"] = str(runtime)
        forked = stack.enter_context(install_forked_kernel(runtime))
        environment["JUPYTER_PATH"] = str(forked)
        log = stack.enter_context((home / "log.txt").open("w"))
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
        stack.callback(end_server, server)  # its kernels end by themselves when it is gone
        lab = Lab(f"http://127.0.0.1:{port}", folder, Path(log.name))

        def answers() -> bool:
            assert server.poll() is None, "JupyterLab did not start"
            with suppress(httpx.TransportError):
                return bool(lab.ask("api"))
            return False

        wait_until(answers, "JupyterLab answers", 90)
        yield lab


def end_server(server: "subprocess.Popen[bytes]") -> None:
    """End a server, by force if necessary."""
    server.terminate()
    try:
        server.wait(5)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


class Tab:
    """A page of the browser that records errors and foreign requests, and its notebooks."""

    def __init__(self, page: Any, lab: Lab) -> None:
        self.page, self.lab = page, lab
        self.folder = Path(tempfile.mkdtemp(dir=lab.folder))
        # Addresses that the surrounding page may request, or whose errors are its own.
        self.excused: tuple[str, ...] = ()
        self.outside: list[str] = []
        self.errors: list[str] = []
        page.on("request", self._request)
        page.on("console", self._console)
        page.on("pageerror", self._error)

    def _request(self, request: Any) -> None:
        at_home = (self.lab.url, "data:", "blob:", "ws://127.0.0.1", *self.excused)
        if not request.url.startswith(at_home):
            self.outside.append(request.url)

    def _console(self, message: Any) -> None:
        url = message.location.get("url", "")
        if message.type == "error" and not self._excuses(url):
            self.errors.append(f"{message.text} ({url})")

    def _error(self, error: Any) -> None:
        stack = error.stack or str(error)
        first_frame = "".join(stack.split("\n")[1:2])
        if not self._excuses(first_frame):
            self.errors.append(stack)

    def _excuses(self, source: str) -> bool:
        return any(address in source for address in self.excused)

    def run_all(self, notebook: str, place: str = "lab/tree") -> None:
        """Open a notebook, by default in JupyterLab, and run it without waiting for its cells."""
        self.copy(notebook)
        self.open(notebook, place)
        self.page.wait_for_function("window.jupyterapp !== undefined")
        self.page.evaluate(READY)
        self.command("notebook:run-all-cells", wait=False)

    def open_dashboard(self, notebook: str) -> None:
        """Have Voilà run a notebook, and open its page."""
        self.copy(notebook)
        self.excused = VOILA_ITSELF
        self.page.route(re.compile("^https:"), lambda route: route.abort())
        self.open(notebook, "voila/render")

    def copy(self, notebook: str) -> None:
        """Put a notebook into this test's folder."""
        (path,) = [folder / notebook for folder in NOTEBOOKS if (folder / notebook).exists()]
        shutil.copy(path, self.folder)

    def open(self, notebook: str, place: str = "lab/tree") -> None:
        """Open a notebook of this test's folder."""
        address = f"{self.lab.url}/{place}/{self.folder.name}/{notebook}?reset&token={TOKEN}"
        self.page.goto(address, timeout=3 * TIMEOUT_MS)

    def wait_until_run(self) -> None:
        """Wait until the last cell has run, and check that no cell failed."""
        cells = self.page.locator(".jp-Notebook-cell.jp-CodeCell")
        expect(cells.last.locator(".jp-InputPrompt")).to_have_text(re.compile(r"\[\d+\]:"))
        assert self.page.locator(".jp-OutputArea-output[data-mime-type*=stderr]").count() == 0

    def list_themes(self) -> Iterator[str]:
        """Switch to each theme in turn, and end with the default theme of JupyterLab."""
        for name, title in {"dark": "JupyterLab Dark", "light": "JupyterLab Light"}.items():
            self.command("apputils:change-theme", theme=title)
            expect(self.page.locator("body")).to_have_attribute("data-jp-theme-name", title)
            yield name

    def find_violations(self) -> list[str]:
        """Find violations of WCAG 2.2 AA in the outputs of the notebook.

        axe-core is the judge: https://github.com/dequelabs/axe-core
        """
        expect(self.page.locator("#jupyterlab-splash")).to_have_count(0)
        self.page.evaluate(NAME_PICTURES)
        response = axe.Axe().run(
            self.page,
            context={"include": [[f".{LAB_OUTPUT}"]]},
            options={"runOnly": RULES, "resultTypes": ["violations"]},
        )
        return [
            f"{rule['id']}: {node['html'][:300]}: {node['failureSummary'][:300]}"
            for rule in response.response["violations"]
            for node in rule["nodes"]
            if LAB_OUTPUT not in node["html"].partition(">")[0]
        ]

    def find_broken_words(self) -> list[str]:
        """Find the words in outputs whose letters are on more than one line."""
        words: list[str] = self.page.evaluate(BROKEN_WORDS)
        return words

    def command(self, name: str, wait: bool = True, **arguments: object) -> None:
        """Execute a command of JupyterLab."""
        keyword = "await " if wait else ""
        script = f"async ([n, a]) => {{ {keyword}window.jupyterapp.commands.execute(n, a); }}"
        self.page.evaluate(script, [name, arguments])

    def cell(self, number: int) -> Any:
        """Return a cell by its position."""
        return self.page.locator(".jp-Notebook-cell").nth(number)

    def output(self, cell: int) -> Any:
        """Return the output of a cell."""
        return self.cell(cell).locator(".jp-OutputArea")

    def panel(self, cell: int) -> Any:
        """Return the widget of a cell."""
        return self.cell(cell).locator(".toolkit-panel").first

    def shoot(self, name: str, element: Any = None) -> None:
        """Keep a screenshot, as output of the build."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        (element or self.page).screenshot(path=SCREENSHOTS / f"{name}.png")


@pytest.fixture(scope="package")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A headless chromium."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as driver:
        context = driver.chromium.launch_persistent_context(
            str(tmp_path_factory.mktemp("profile")),
            executable_path=chromium,
            headless=True,
            args=list(ARGUMENTS),
            viewport={"width": 1280, "height": 900},
        )
        context.set_default_timeout(TIMEOUT_MS)
        expect.set_options(timeout=TIMEOUT_MS)
        yield context
        context.close()


@pytest.fixture
def tab(lab: Lab, browser: Any) -> Iterator[Tab]:
    """A fresh page, which fails the test on a request to another machine or an error."""
    page = browser.new_page()
    tab = Tab(page, lab)
    yield tab
    page.close()
    for kernel in lab.ask("api/kernels"):
        lab.ask(f"api/kernels/{kernel['id']}", "DELETE")
    assert tab.outside == []
    assert tab.errors == []
