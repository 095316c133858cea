"""A `/v1` server next to a notebook server; jupyter-server-proxy starts it on the first request.

If both are installed, `…/toolkit/v1` next to `…/lab` is the service, as on Binder.
"""

import sys
from typing import Any


def server() -> dict[str, Any]:
    """Return the settings for jupyter-server-proxy, which finds this function by entry point."""
    command = [sys.executable, "-m", "toolkit", "serve", "--port", "{port}"]
    return {
        "command": [*command, "--data-dir", ".toolkit-server", "--log-level", "error"],
        # Seconds to an answer: a free Binder is slow on its first day, a busy machine always.
        "timeout": 120,
        "launcher_entry": {
            "enabled": True,
            "title": "Toolkit /v1",
            "path_info": "toolkit/openapi.json",
        },
    }
