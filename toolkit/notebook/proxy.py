"""A `/v1` server beside a notebook server, started by jupyter-server-proxy on the first request.

Where both are installed, `…/toolkit/v1` next to `…/lab` is the service, as on Binder.
"""

import sys
from typing import Any


def server() -> dict[str, Any]:
    """Return the settings for jupyter-server-proxy, which finds this by entry point."""
    command = [sys.executable, "-m", "toolkit", "serve", "--port", "{port}"]
    return {
        "command": [*command, "--data-dir", ".toolkit-server", "--log-level", "error"],
        # Until it answers: a free Binder is slow on its first day, and a busy machine always.
        "timeout": 120,
        "launcher_entry": {
            "enabled": True,
            "title": "Toolkit /v1",
            "path_info": "toolkit/openapi.json",
        },
    }
