"""What work on a Dask cluster costs, beside worker processes of this machine and Dask alone.

Run `python -m benchmarks.dispatch`. The cluster is two worker processes on loopback. All is done in
turns, and what is told is the median of rounds.

- `local` and `dask` are steps of some milliseconds in pure Python, one after the other, as nodes of
  a durable chain: their floor is the bare function. The peer of `dask` is Dask alone, which has the
  same function called by its own client.
- `notebook` is what each of 64 notebooks takes on the cluster, beyond what it takes in a batch on
  this machine with two workers, which is its floor; their engine is opened and served with it. The
  notebook has five cells and nothing to do. At most 0.15 s.
"""

import asyncio
import logging
import sys
import tempfile
import time
import warnings
from pathlib import Path

from benchmarks._cpu_work import count_turns
from benchmarks._dask_cluster import start_cluster
from benchmarks._noop import open_noop_engine
from benchmarks._report import report_rounds
from benchmarks.batch import write_notebook
from benchmarks.cpu_steps import STEP, measure_calls_ms, measure_chain_ms
from toolkit import batch
from toolkit.engine.request_context import RequestContext

ROUNDS, STEPS, NOTEBOOKS = 5, 100, 64
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


def main(rounds: int = ROUNDS, steps: int = STEPS, notebooks: int = NOTEBOOKS) -> int:
    """Measure; exit code 1 if a limit is not kept."""
    warnings.simplefilter("ignore")
    logging.getLogger("papermill").setLevel(logging.ERROR)
    bare, local, dask, alone, there, here = ([] for _ in range(6))  # type: ignore[var-annotated]
    with tempfile.TemporaryDirectory() as name, start_cluster(WORKERS) as address:
        folder = Path(name)
        write_notebook(folder)
        dispatch = address.replace("tcp://", "dask://")
        for _ in range(rounds):
            bare.append(measure_calls_ms(lambda: count_turns(TURNS), steps, time.monotonic))
            local.append(asyncio.run(measure_steps_ms(steps, None)))
            dask.append(asyncio.run(measure_steps_ms(steps, dispatch)))
            alone.append(measure_dask_alone_ms(address, steps))
            here.append(measure_notebook_s(folder, notebooks, None))
            there.append(measure_notebook_s(folder, notebooks, address))
    report_rounds("dispatch.local", local, "ms/step", floors=bare, limit=None)
    report_rounds(
        "dispatch.dask", dask, "ms/step", floors=bare, limit=None, peers=alone, peer="Dask"
    )
    beyond = [far - near for far, near in zip(there, here, strict=True)]
    kept = report_rounds(
        "dispatch.notebook",
        beyond,
        "s",
        floors=here,
        limit=MOST_OVER_LOCAL_S,
        notebooks=notebooks,
    )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
