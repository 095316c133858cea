"""Starts `toolkit` processes fast: imports everything first, and forks for each process.

Otherwise a server that is killed hundreds of times would spend most of its life on imports. The
child then runs the module itself. Requests are lines of JSON on stdin, with a line each on stdout:
`{"command": ["toolkit", ...], "env": {...}}` starts a child and returns its id, `{"poll": id}`
returns its exit code, or null while it runs.
"""

import ctypes
import gc
import json
import os
import runpy
import signal
import sys
import traceback
from functools import cache
from importlib.metadata import entry_points
from typing import Any
from unittest.mock import patch

from tests.crash.crash_points import CRASH_VARIABLE, install_crash_point
from tests.crash.warm_workers import fork_workers
from toolkit import capabilities, vendors
from toolkit.capabilities._card_drawing import draw_card
from toolkit.engine.routing import registry
from toolkit.planning.steps import plan_objective
from toolkit.workers.serialization import get_function_name, load_functions

WORKERS = 2


def preload() -> None:
    """Import all modules of a running server, and list the installed packages."""
    for module in (capabilities, registry, vendors):
        patch.object(module, "entry_points", cache(entry_points)).start()
    import httpx_aiohttp  # noqa: F401
    import uvloop  # noqa: F401

    import toolkit.cli.commands.serve
    import toolkit.engine.transport.checking_transport
    import toolkit.local
    import toolkit.observability
    import toolkit.planning.keywords.planner
    import toolkit.sandbox.app
    import toolkit.sandbox.transport
    import toolkit.server.serve  # noqa: F401
    from toolkit.engine import Registry
    from toolkit.sandbox.vendor_paths import VENDOR_PATHS
    from toolkit.sandbox.wires import load_wire
    from toolkit.store import schema  # noqa: F401

    Registry.load()
    for wire in VENDOR_PATHS:
        load_wire(wire)


def allow_tracing() -> None:
    """Let any process of the same user trace this process."""
    pr_set_ptracer, any_process = 0x59616D61, -1
    ctypes.CDLL(None).prctl(pr_set_ptracer, any_process, 0, 0, 0)


def fork_command(command: list[str], env: dict[str, str], log: str) -> int:
    """Fork a child that runs a module with arguments; return its id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        allow_tracing()
        os.environ.update(env)
        if CRASH_VARIABLE in env:
            install_crash_point(env[CRASH_VARIABLE])
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for mine, theirs in ((nothing, 0), (out, 1), (out, 2)):
            os.dup2(mine, theirs)
        if not command[0].endswith(("sandbox", "vendor_ledger")):
            fork_workers(WORKERS)
        sys.argv = command
        runpy.run_module(command[0], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def main() -> None:
    """Serve until stdin ends, and leave no child behind."""
    preload()
    load_functions([get_function_name(plan_objective), get_function_name(draw_card)])
    import miniaudio  # noqa: F401 - a worker measures sounds with it

    gc.freeze()  # otherwise a collection would write to all memory that children share
    codes: dict[int, int | None] = {}
    print("ready", flush=True)
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        if "command" in request:
            child = fork_command(request["command"], request["env"], request["log"])
            codes[child] = None
            print(child, flush=True)
            continue
        child = request["poll"]
        if codes[child] is None:
            pid, status = os.waitpid(child, os.WNOHANG)
            codes[child] = os.waitstatus_to_exitcode(status) if pid else None
        print(json.dumps(codes[child]), flush=True)
    for child, code in codes.items():
        if code is None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


if __name__ == "__main__":
    main()
