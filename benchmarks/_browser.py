"""A page in a headless Chromium, and the messages that it posts."""

import queue
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--remote-debugging-port=0", "--window-size=1280,900",
)  # fmt: skip


def find_browser() -> str | None:
    """Find Chromium on this machine; returns None if it is not installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def open_page(browser: str, html: str) -> Iterator["queue.Queue[str]"]:
    """Open a page in its own browser, and yield a queue of the texts it posts to `/`."""
    messages: queue.Queue[str] = queue.Queue()

    class PageHandler(BaseHTTPRequestHandler):
        """Serves the page and receives its messages."""

        def do_GET(self) -> None:
            """Answer with the page."""
            self._answer(html.encode())

        def do_POST(self) -> None:
            """Receive a message from the page."""
            messages.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self._answer(b"")

        def log_message(self, *_: object) -> None:
            """Log nothing."""

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), PageHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        url = f"http://127.0.0.1:{server.server_port}/"
        command = [browser, *ARGUMENTS, f"--user-data-dir={profile}", url]
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            yield messages
        finally:
            process.terminate()
            process.wait(10)
            server.shutdown()
            server.server_close()
