"""The cost of work on a Dask cluster, compared with local workers, Dask alone and Prefect.

Run `python -m benchmarks.dispatch`; it takes at most three minutes on an idle machine. The cluster
has two worker processes on loopback. All measurements are taken in turns; figures are medians of
rounds, with the lowest and the highest round.

- `local` and `dask` are steps of some milliseconds in pure Python, as nodes of a durable chain;
  their floor is the bare function. The peer of `dask` is Dask alone: its own client calls the same
  function.
- `local.of_prefect` and `dask.of_prefect` are the same steps over tasks of Prefect (`_prefect.py`),
  in a thread and on a Dask cluster of the same size, if `PEERS` names a Python that has it
  (`_peers.py`). Its server is on this machine, and stores the states of tasks in SQLite, as ours.
- `notebook` is the time per notebook of 64 notebooks on the cluster, less the time in a batch on
  this machine with two workers, which is its floor; both include the start of an engine and its
  server. The notebook has five cells that do next to nothing. At most 0.15 s. `first` is the same
  for the first round, in which the workers import their modules.
"""

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks._cpu_work import count_turns
from benchmarks._dask_cluster import start_cluster
from benchmarks._noop import open_noop_engine
from benchmarks._peers import find_peer
from benchmarks._report import report_rounds
from benchmarks.batch import write_notebook
from benchmarks.cpu_steps import STEP, measure_calls_ms, measure_chain_ms
from toolkit import batch
from toolkit.engine.request_context import RequestContext

ROUNDS, STEPS, NOTEBOOKS = 5, 100, 64
PREFECT_STEPS = 10  # because each takes longer
WORKERS = 2
TURNS = 50_000
MOST_OVER_LOCAL_S = 0.15


async def measure_steps_ms(count: int, dispatch: str | None) -> float:
    """Measure the milliseconds per step of a chain of steps, after the workers have started."""
    with tempfile.TemporaryDirectory() as folder:
        async with open_noop_engine(Path(folder), STEP, dispatch=dispatch) as engine:
            account, _ = await engine.accounts.open_local_account()
            context = RequestContext(account.id)
            await measure_chain_ms(engine, context, 2 * WORKERS, time.monotonic, turns=TURNS)
            return await measure_chain_ms(engine, context, count, time.monotonic, turns=TURNS)


def measure_dask_alone_ms(address: str, count: int) -> float:
    """Measure the milliseconds per call of a sequence of calls by Dask's own client."""
    from distributed import Client

    with Client(address, set_as_default=False) as client:

        def call() -> None:
            client.submit(count_turns, TURNS, pure=False).result()

        for _ in range(2 * WORKERS):
            call()
        return measure_calls_ms(call, count, time.monotonic)


def measure_notebook_s(folder: Path, count: int, address: str | None) -> float:
    """Measure the seconds per notebook of a batch, local or on the cluster."""
    with tempfile.TemporaryDirectory() as out:
        began = time.monotonic()
        table = batch.run(
            folder / "n.ipynb",
            {"x": list(range(count))},
            out=out,
            workers=WORKERS if address is None else None,
            progress=False,
            dask=address,
            sandbox=True,
            data_dir=folder / "data",
        )
        spent = time.monotonic() - began
    if set(table["status"]) != {"completed"}:
        raise RuntimeError("a notebook failed")
    return spent / count


@contextmanager
def start_prefect(python: str) -> Iterator[Callable[[str, int], float]]:
    """Start Prefect; yield a function that measures the milliseconds per step by kind of runner."""
    with tempfile.TemporaryDirectory() as home:
        variables = {
            "PREFECT_HOME": home,
            "PREFECT_LOGGING_LEVEL": "CRITICAL",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "90",
            "DO_NOT_TRACK": "1",
            "NO_PROXY": "127.0.0.1,localhost",
            "PYTHONPATH": str(Path(__file__).parent),  # for its workers
        }
        with subprocess.Popen(
            [python, str(Path(__file__).with_name("_prefect.py"))],
            env={**os.environ, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        ) as process:
            requests, responses = process.stdin, process.stdout
            assert requests is not None
            assert responses is not None

            def measure(runner: str, steps: int) -> float:
                request = {"runner": runner, "steps": steps, "turns": TURNS}
                print(json.dumps(request), file=requests, flush=True)
                # Prefect's server and workers are stopped while others are measured.
                os.killpg(process.pid, signal.SIGCONT)
                took_ms = float(responses.readline())
                os.killpg(process.pid, signal.SIGSTOP)
                return took_ms

            try:
                yield measure
            finally:
                os.killpg(process.pid, signal.SIGKILL)


def main(
    rounds: int = ROUNDS,
    steps: int = STEPS,
    notebooks: int = NOTEBOOKS,
    prefect_steps: int = PREFECT_STEPS,
) -> int:
    """Run the benchmark; the exit code is 1 if a figure misses its limit."""
    warnings.simplefilter("ignore")
    logging.getLogger("papermill").setLevel(logging.ERROR)
    took: defaultdict[str, list[float]] = defaultdict(list)
    prefect = find_peer("prefect_dask")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        address = stack.enter_context(start_cluster(WORKERS))
        ask_prefect = None if prefect is None else stack.enter_context(start_prefect(prefect))
        write_notebook(folder)
        dispatch = address.replace("tcp://", "dask://")
        for _ in range(rounds):
            took["bare"].append(measure_calls_ms(lambda: count_turns(TURNS), steps, time.monotonic))
            took["local"].append(asyncio.run(measure_steps_ms(steps, None)))
            took["dask"].append(asyncio.run(measure_steps_ms(steps, dispatch)))
            took["alone"].append(measure_dask_alone_ms(address, steps))
            if ask_prefect is not None:
                took["prefect.local"].append(ask_prefect("thread", prefect_steps))
                took["prefect.dask"].append(ask_prefect("dask", prefect_steps))
            took["here"].append(measure_notebook_s(folder, notebooks, None))
            took["there"].append(measure_notebook_s(folder, notebooks, address))
    bare, alone = took["bare"], took["alone"]
    report_rounds("dispatch.local", took["local"], "ms/step", floors=bare, limit=None)
    report_rounds(
        "dispatch.dask", took["dask"], "ms/step", floors=bare, limit=None, peers=alone, peer="Dask"
    )
    for name in ("local", "dask") if prefect is not None else ():
        theirs = took[f"prefect.{name}"]
        report_rounds(
            f"dispatch.{name}.of_prefect",
            _divide(took[name], theirs),
            "x Prefect's time",
            floors=_divide(bare, theirs),
            limit=None,
            peers=theirs,
            peer="Prefect, ms/step",
        )
    beyond = [far - near for far, near in zip(took["there"], took["here"], strict=True)]
    is_kept = report_rounds(
        "dispatch.notebook",
        beyond,
        "s",
        floors=took["here"],
        limit=MOST_OVER_LOCAL_S,
        notebooks=notebooks,
        first=round(beyond[0], 4),
        times_local=round(min(took["there"]) / min(took["here"]), 3),
    )
    return 0 if is_kept else 1


def _divide(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    return [ours_ms / theirs_ms for ours_ms, theirs_ms in zip(ours, theirs, strict=True)]


if __name__ == "__main__":
    sys.exit(main())
