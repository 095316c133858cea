"""The server, which routes from a table on Starlette, compared with plain FastAPI.

Run `python -m benchmarks.server_frameworks`. Both serve the same resource of the same engine in
this process, behind the same middleware, in turns, without a network. Figures are CPU time per
request; the floor is the time of FastAPI (`_native_runs.py`, which lists its limitations).

- `read`: `GET /v1/runs/{id}`. `accept`: `POST /v1/runs` of a run that does nothing, until its end.
- `engine_ms` is the same call of the engine without a server. `noise` is the ratio of the server to
  itself, measured in the same turns: smaller differences mean nothing.
- `import`: the framework alone, in addition to an engine, in a new process; `server_s` is the whole
  server.
- `lines`: of the resource `runs`: its rows in the table, and its functions.
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
    """Send a request to an app as a server does; return the body of the response."""
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
    content = b"".join(message.get("body", b"") for message in answer)
    assert answer[0]["status"] in (200, 202), content
    return content


def make_reads(app: ASGIApp, key: str, run_id: str) -> Work:
    """Make a function that reads a run `count` times."""

    async def read(count: int) -> None:
        for _ in range(count):
            await request(app, key, "GET", f"/v1/runs/{run_id}")

    return read


def make_accepts(app: ASGIApp, key: str, engine: Engine) -> Work:
    """Make a function that creates `count` runs and waits for their ends."""
    body = json.dumps(RUN).encode()

    async def accept(count: int) -> None:
        runs = [json.loads(await request(app, key, "POST", "/v1/runs", body)) for _ in range(count)]
        context = await engine.accounts.authenticate(key)
        for run in runs:
            await engine.wait(context, run["id"], 10.0)

    return accept


async def measure_ms(works: dict[str, Work], rounds: int, count: int) -> dict[str, list[float]]:
    """Measure the CPU time of a request by each function, in rounds of turns."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for work_ in works.values():
        await work_(count // 4)  # warm
    for _ in range(rounds):
        for name, work_ in works.items():
            began = time.process_time()
            await work_(count)
            times[name].append((time.process_time() - began) / count * 1000)
    return times


def report_times(figure: str, times: dict[str, list[float]]) -> bool:
    """Report the server with FastAPI as its floor, and the noise."""
    medians = {name: statistics.median(values) for name, values in times.items()}
    return report(
        f"server_frameworks.{figure}",
        medians["table"],
        "ms",
        floor=medians["native"],
        limit=None,
        engine_ms=round(medians["engine"], 4),
        noise=round(medians["again"] / medians["table"], 3),
        spread=[round(f(times["table"]), 4) for f in (min, max)],
        floor_spread=[round(f(times["native"]), 4) for f in (min, max)],
    )


def measure_import_s(module: str, rounds: int) -> float:
    """Measure the CPU time of an import in addition to the engine's, in new processes."""
    program = [sys.executable, "-c", IMPORT.format(module=module)]
    times = [float(subprocess.check_output(program)) for _ in range(rounds)]
    return statistics.median(times)


def count_lines() -> tuple[int, int]:
    """Count the lines of `runs` in the table, and in plain FastAPI."""
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
    """Measure and report everything; the exit code is 1 if a limit is missed."""
    with tempfile.TemporaryDirectory() as folder:
        async with open_noop_engine(
            Path(folder), rate_limit_per_s=1e9, rate_limit_burst=10**9
        ) as engine:
            account = await engine.accounts.sign_up(AccountCreate(email="ada@example.org"), "")
            key = account.api_key
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
            are_kept = report_times(
                "read", await measure_ms({**reads, "engine": read}, rounds, count)
            )
            are_kept &= report_times(
                "accept", await measure_ms({**accepts, "engine": accept}, rounds, count)
            )
    are_kept &= report(
        "server_frameworks.import",
        measure_import_s(STARLETTE, imports),
        "s",
        floor=measure_import_s("fastapi", imports),
        limit=None,
        server_s=round(measure_import_s("toolkit.server.app", imports), 4),
    )
    rows, routes = count_lines()
    are_kept &= report("server_frameworks.lines", rows, "lines", floor=routes, limit=None)
    return 0 if are_kept else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
