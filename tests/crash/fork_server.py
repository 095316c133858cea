"""Starts `toolkit` processes fast: imports everything once, and forks for each one.

A server that is killed hundreds of times would else spend most of its life on imports. What the
child runs from then on is the command itself. Lines of JSON come in on stdin, one answer each goes
out on stdout: `{"argv": [...], "env": {...}}` starts a child and tells its id, `{"poll": id}`
tells how it ended, or null while it runs.
"""

import ctypes
import json
import os
import signal
import sys
from typing import Any


def preload() -> None:
    """Import what a server imports by the time that it answers."""
    import httpx_aiohttp  # noqa: F401

    import toolkit.cli
    import toolkit.local
    import toolkit.observability
    import toolkit.sandbox.app
    import toolkit.server.serve  # noqa: F401
    from toolkit.engine import Registry
    from toolkit.store import schema  # noqa: F401

    Registry.load()


def allow_tracing() -> None:
    """Let any process of the same user trace this one; where that is so anyway, nothing happens."""
    pr_set_ptracer, any_process = 0x59616D61, -1
    ctypes.CDLL(None).prctl(pr_set_ptracer, any_process, 0, 0, 0)


def fork_command(argv: list[str], env: dict[str, str], log: str) -> int:
    """Fork a child that runs the command; its id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        allow_tracing()
        os.environ.update(env)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for mine, theirs in ((nothing, 0), (out, 1), (out, 2)):
            os.dup2(mine, theirs)
        sys.argv = ["toolkit", *argv]
        from toolkit.cli import main

        main()
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def main() -> None:
    """Serve until stdin ends, and leave no child behind."""
    preload()
    ended: dict[int, int | None] = {}
    print("ready", flush=True)
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        if "argv" in asked:
            child = fork_command(asked["argv"], asked["env"], asked["log"])
            ended[child] = None
            print(child, flush=True)
            continue
        child = asked["poll"]
        if ended[child] is None:
            done, status = os.waitpid(child, os.WNOHANG)
            ended[child] = os.waitstatus_to_exitcode(status) if done else None
        print(json.dumps(ended[child]), flush=True)
    for child in [one for one, status in ended.items() if status is None]:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
