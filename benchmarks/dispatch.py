"""What work on a Dask cluster costs, beside this machine's own workers, Dask alone and Prefect.

Run `python -m benchmarks.dispatch`, three minutes at the most on a machine that does nothing else.
The cluster is two worker processes on loopback. All is done in turns, and what is told is the
median of rounds, with the least and the most of them.

- `local` and `dask` are steps of some milliseconds in pure Python, one after the other, as nodes of
  a durable chain: their floor is the bare function. The peer of `dask` is Dask alone, which has the
  same function called by its own client.
- `local.of_prefect` and `dask.of_prefect` are the same steps over tasks of Prefect (`_prefect.py`),
  in a thread and on a Dask cluster like this one, where `PEERS` names a Python that has it
  (`_peers.py`). Its server is on this machine, and it keeps the states of tasks in SQLite, as ours.
- `notebook` is what each of 64 notebooks takes on the cluster, beyond what it takes in a batch on
  this machine with two workers, which is its floor; their engine is opened and served with it. The
  notebook has five cells and nothing to do. At most 0.15 s. `first` is the same of the first round,
  whose workers import what they need; later rounds find it there.
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
PREFECT_STEPS = 10  # fewer, as each takes longer
WORKERS = 2
TURNS = 50_000
MOST_OVER_LOCAL_S = 0.15


async def measure_steps_ms(count: int, dispatch: str | None) -> float:
    """Measure the milliseconds of a step, in a chain of so many, once the workers are there."""
    with tempfile.TemporaryDirectory() as folder:
        async with open_noop_engine(Path(folder), STEP, dispatch=dispatch) as engine:
            account, _ = await engine.accounts.open_local_account()
            context = RequestContext(account.id)
            await measure_chain_ms(engine, context, 2 * WORKERS, time.monotonic, turns=TURNS)
            return await measure_chain_ms(engine, context, count, time.monotonic, turns=TURNS)


def measure_dask_alone_ms(address: str, count: int) -> float:
    """Measure the milliseconds of a call by Dask's own client, of so many one after the other."""
    from distributed import Client

    with Client(address, set_as_default=False) as client:

        def call() -> None:
            client.submit(count_turns, TURNS, pure=False).result()

        for _ in range(2 * WORKERS):
            call()
        return measure_calls_ms(call, count, time.monotonic)


def measure_notebook_s(folder: Path, count: int, address: str | None) -> float:
    """Measure the seconds of a notebook, of so many: here, or on the cluster."""
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
    """Start Prefect; yield what measures the milliseconds of its steps, by the kind of runner."""
    with tempfile.TemporaryDirectory() as home:
        own = {
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
            env={**os.environ, **own},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        ) as process:
            asking, answering = process.stdin, process.stdout
            assert asking is not None
            assert answering is not None

            def measure(runner: str, steps: int) -> float:
                asked = {"runner": runner, "steps": steps, "turns": TURNS}
                print(json.dumps(asked), file=asking, flush=True)
                # Its server and its workers are halted while it is not its turn.
                os.killpg(process.pid, signal.SIGCONT)
                took_ms = float(answering.readline())
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
    """Measure; exit code 1 if a limit is not kept."""
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
            "x its ms/step",
            floors=_divide(bare, theirs),
            limit=None,
            peers=theirs,
            peer="Prefect, ms/step",
        )
    beyond = [far - near for far, near in zip(took["there"], took["here"], strict=True)]
    kept = report_rounds(
        "dispatch.notebook",
        beyond,
        "s",
        floors=took["here"],
        limit=MOST_OVER_LOCAL_S,
        notebooks=notebooks,
        first=round(beyond[0], 4),
        times_local=round(min(took["there"]) / min(took["here"]), 3),
    )
    return 0 if kept else 1


def _divide(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    return [own / other for own, other in zip(ours, theirs, strict=True)]


if __name__ == "__main__":
    sys.exit(main())
