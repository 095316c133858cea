"""One JupyterLab for all browser tests, and Debian's own chromium to look at it with."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.support.ports import free_port
from tests.support.timing import wait_until

playwright = pytest.importorskip("playwright.sync_api")

ROOT = Path(__file__).parent.parent.parent
SCREENSHOTS = ROOT / "build" / "screenshots"
TIMEOUT_MS = 90_000  # a busy machine is slow; what takes time is waited for, never slept over
TOKEN = "browser-tests"
ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic",
    "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
)  # fmt: skip
# Resolved once the kernel stayed the same, connected and idle for a while: JupyterLab may start
# one kernel and go on with another.
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
    const fine = kernel?.status === "idle" && kernel.connectionStatus === "connected";
    if (!fine || kernel.id !== known) { since = performance.now(); known = kernel?.id; }
  }
}"""
# Words of letters alone whose letters stand on more than one line.
BROKEN_WORDS = """() => {
  const broken = [];
  for (const output of document.querySelectorAll(".jp-OutputArea-output")) {
    const texts = document.createTreeWalker(output, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      for (const word of texts.currentNode.data.matchAll(/[A-Za-z]{2,24}/g)) {
        const range = document.createRange();
        range.setStart(texts.currentNode, word.index);
        range.setEnd(texts.currentNode, word.index + word[0].length);
        const lines = new Set([...range.getClientRects()].map((one) => Math.round(one.top)));
        if (lines.size > 1) broken.push(word[0]);
      }
    }
  }
  return broken;
}"""


@dataclass
class Lab:
    """A JupyterLab over a folder of copied notebooks."""

    url: str
    folder: Path
    log: Path


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A server with all its files in a folder of its own."""
    home = tmp_path_factory.mktemp("lab")
    folder = home / "notebooks"
    folder.mkdir()
    for notebook in [
        *(ROOT / "notebooks").glob("*.ipynb"),
        *Path(__file__).parent.glob("*/*.ipynb"),
    ]:
        shutil.copy(notebook, folder)
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
    own = {
        "JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "IPYTHONDIR": "ipython",
        "JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    }  # fmt: skip
    environment = {**os.environ, **{name: str(home / part) for name, part in own.items()}}
    # The kernels' sockets lie in it, and the path of a socket has 107 characters at most.
    environment["JUPYTER_RUNTIME_DIR"] = runtime = tempfile.mkdtemp(prefix="lab-")
    command = [
        sys.executable, "-m", "jupyterlab", "--allow-root", "--no-browser", "--ip=127.0.0.1",
        f"--port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}",
        f"--ServerApp.root_dir={folder}", "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True", "--KernelManager.transport=ipc",
    ]  # fmt: skip
    with (told := home / "log.txt").open("w") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
        try:
            url = f"http://127.0.0.1:{port}"
            _until_it_answers(f"{url}/api?token={TOKEN}", server)
            yield Lab(url, folder, told)
        finally:
            server.terminate()  # its kernels end by themselves when it is gone
            try:
                server.wait(5)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
            shutil.rmtree(runtime)


def _until_it_answers(url: str, server: "subprocess.Popen[bytes]") -> None:
    def answers() -> bool:
        assert server.poll() is None, "JupyterLab did not start"
        try:
            with urlopen(url):
                return True
        except OSError:
            return False

    wait_until(answers, "JupyterLab answers", 90)


class Tab:
    """A page of the browser that notes what it must not do."""

    def __init__(self, page: Any, lab: Lab) -> None:
        self.page, self.lab = page, lab
        # Where the page around our widgets asks others for something, or has faults of its own.
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
        where = message.location.get("url", "")
        if message.type == "error" and not self._excuses(where):
            self.errors.append(f"{message.text} ({where})")

    def _error(self, error: Any) -> None:
        told = error.stack or str(error)
        thrown_at = "".join(told.split("\n")[1:2])
        if not self._excuses(thrown_at):
            self.errors.append(told)

    def _excuses(self, where: str) -> bool:
        return any(place in where for place in self.excused)

    def run_all(self, notebook: str, place: str = "lab/tree") -> None:
        """Open a notebook, by default in JupyterLab, and run it without waiting for its cells."""
        self.page.goto(f"{self.lab.url}/{place}/{notebook}?reset&token={TOKEN}")
        self.page.wait_for_function("window.jupyterapp !== undefined")
        self.page.evaluate(READY)
        self.command("notebook:run-all-cells", wait=False)

    def find_broken_words(self) -> list[str]:
        """Find the words in outputs of which some letters stand on another line."""
        found: list[str] = self.page.evaluate(BROKEN_WORDS)
        return found

    def command(self, name: str, wait: bool = True, **arguments: object) -> None:
        """Carry out one of JupyterLab's own commands."""
        done = "await " if wait else ""
        script = f"async ([n, a]) => {{ {done}window.jupyterapp.commands.execute(n, a); }}"
        self.page.evaluate(script, [name, arguments])

    def panel(self, cell: int) -> Any:
        """The widget that a cell shows."""
        return self.page.locator(".jp-Notebook-cell").nth(cell).locator(".toolkit-panel").first

    def shoot(self, name: str, what: Any = None) -> None:
        """Keep a picture, as output of the build."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        (what or self.page).screenshot(path=SCREENSHOTS / f"{name}.png")


@pytest.fixture(scope="module")
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
        playwright.expect.set_options(timeout=TIMEOUT_MS)
        yield context
        context.close()


@pytest.fixture
def tab(lab: Lab, browser: Any) -> Iterator[Tab]:
    """A fresh page, that must neither go off the machine nor meet an error."""
    page = browser.new_page()
    tab = Tab(page, lab)
    yield tab
    tab.shoot("last")
    page.close()
    assert tab.outside == []
    assert tab.errors == []
