"""The server, which routes from a table on Starlette, beside the same resource natively in FastAPI.

Run `python -m benchmarks.server_frameworks`. Both serve the same engine in this process, behind the
same middleware, in turns, without a network. Figures are CPU time of a request; the floor is that
of FastAPI (`_native_runs.py`, which says what it does not do).

- `read`: `GET /v1/runs/{id}`. `accept`: `POST /v1/runs` of a run that does nothing, until done.
- `engine_ms` is the same call of the engine without any server. `noise` is the ratio of the server
  to itself, measured in the same turns: what differs by less is none.
- `import`: the framework alone, over an engine, in a new process; `server_s` is the whole server.
- `lines`: of the resource `runs`: its rows of the table, and its functions.
"""

import ast
import asyncio
import inspect
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Message

from benchmarks._native_runs import create_native_app
from benchmarks._noop import open_noop_engine
from benchmarks._report import report
from toolkit.contract.account import AccountCreate
from toolkit.contract.operations import work
from toolkit.contract.runs import RunCreate
from toolkit.engine import Engine
from toolkit.server import create_app

ROUNDS, REQUESTS, IMPORTS = 9, 300, 5
RUN = {"name": "bench.nap", "input": {"seconds": 0.0}}
IMPORT = (
    "import time, toolkit.engine.engine; began = time.process_time(); import {module};"
    " print(time.process_time() - began)"
)
STARLETTE = "starlette.applications, starlette.routing, starlette.requests, starlette.responses"
Work = Callable[[int], Awaitable[None]]


async def request(app: ASGIApp, key: str, method: str, path: str, body: bytes = b"") -> bytes:
    """Ask an app for something as a server does."""
    answer: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        answer.append(message)

    headers = {
        "host": "service.test",
        "authorization": f"Bearer {key}",
        "content-type": "application/json",
        "content-length": str(len(body)),
    }
    scope: dict[str, Any] = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "query_string": b"",
        "client": ("127.0.0.1", 1),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    await app(scope, receive, send)
    whole = b"".join(message.get("body", b"") for message in answer)
    assert answer[0]["status"] in (200, 202), whole
    return whole


def make_reads(app: ASGIApp, key: str, run_id: str) -> Work:
    """So many reads of one run."""

    async def read(count: int) -> None:
        for _ in range(count):
            await request(app, key, "GET", f"/v1/runs/{run_id}")

    return read


def make_accepts(app: ASGIApp, key: str, engine: Engine) -> Work:
    """So many runs, until all are done."""
    body = json.dumps(RUN).encode()

    async def accept(count: int) -> None:
        made = [json.loads(await request(app, key, "POST", "/v1/runs", body)) for _ in range(count)]
        context = await engine.accounts.authenticate(key)
        for run in made:
            await engine.wait(context, run["id"], 10.0)

    return accept


async def measure_ms(works: dict[str, Work], rounds: int, count: int) -> dict[str, list[float]]:
    """The CPU time of one request, by what does it: a round of each in turns."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for work_ in works.values():
        await work_(count // 4)  # warm
    for _ in range(rounds):
        for name, work_ in works.items():
            began = time.process_time()
            await work_(count)
            taken[name].append((time.process_time() - began) / count * 1000)
    return taken


def tell(figure: str, taken: dict[str, list[float]]) -> bool:
    """Report the server beside FastAPI, with what is noise."""
    medians = {name: statistics.median(each) for name, each in taken.items()}
    return report(
        f"server_frameworks.{figure}",
        medians["table"],
        "ms",
        floor=medians["native"],
        limit=None,
        engine_ms=round(medians["engine"], 4),
        noise=round(medians["again"] / medians["table"], 3),
        spread=[round(f(taken["table"]), 4) for f in (min, max)],
        floor_spread=[round(f(taken["native"]), 4) for f in (min, max)],
    )


def measure_import_s(module: str, rounds: int) -> float:
    """The CPU time of an import over that of the engine, in new processes."""
    program = [sys.executable, "-c", IMPORT.format(module=module)]
    taken = [float(subprocess.check_output(program)) for _ in range(rounds)]
    return statistics.median(taken)


def count_lines() -> tuple[int, int]:
    """The lines of `runs`: in the table, and natively."""
    rows = [
        node.end_lineno - node.lineno + 1
        for node in ast.parse(inspect.getsource(work)).body
        if isinstance(node, ast.Assign)
        and ast.unparse(node.targets[0]).lstrip("_").partition("_")[0] == "RUNS"
        and node.end_lineno is not None
    ]
    native = ast.parse(inspect.getsource(create_native_app)).body[0]
    assert isinstance(native, ast.FunctionDef)
    routes = [
        node.end_lineno - node.decorator_list[0].lineno + 1
        for node in native.body
        if isinstance(node, ast.AsyncFunctionDef)
        and "/v1/" in ast.unparse(node.decorator_list[0])
        and node.end_lineno is not None
    ]
    return sum(rows), sum(routes)


async def main(rounds: int = ROUNDS, count: int = REQUESTS, imports: int = IMPORTS) -> int:
    """Measure and report everything; 1 if a limit is not kept."""
    with tempfile.TemporaryDirectory() as folder:
        async with open_noop_engine(
            Path(folder), rate_limit_per_s=1e9, rate_limit_burst=10**9
        ) as engine:
            made = await engine.accounts.sign_up(AccountCreate(email="ada@example.org"), "")
            key = made.api_key
            context = await engine.accounts.authenticate(key)
            table, native = create_app(engine), create_native_app(engine)
            first = json.loads(
                await request(table, key, "POST", "/v1/runs", json.dumps(RUN).encode())
            )

            async def read(times: int) -> None:
                for _ in range(times):
                    await engine.runs.get(context, first["id"])

            async def accept(times: int) -> None:
                body = RunCreate.model_validate(RUN)
                runs = [await engine.runs.create(context, body) for _ in range(times)]
                for run in runs:
                    await engine.wait(context, run.id, 10.0)

            apps = {"table": table, "native": native, "again": table}
            reads = {name: make_reads(app, key, first["id"]) for name, app in apps.items()}
            accepts = {name: make_accepts(app, key, engine) for name, app in apps.items()}
            kept = tell("read", await measure_ms({**reads, "engine": read}, rounds, count))
            kept &= tell("accept", await measure_ms({**accepts, "engine": accept}, rounds, count))
    kept &= report(
        "server_frameworks.import",
        measure_import_s(STARLETTE, imports),
        "s",
        floor=measure_import_s("fastapi", imports),
        limit=None,
        server_s=round(measure_import_s("toolkit.server.app", imports), 4),
    )
    rows, routes = count_lines()
    kept &= report("server_frameworks.lines", rows, "lines", floor=routes, limit=None)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
