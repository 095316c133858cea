"""The command `toolkit batch`."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from toolkit.cli.output import escape_controls, print_json
from toolkit.cli.target import AsJson


def batch(
    notebook: Annotated[Path, Argument(help="Notebook with a cell tagged `parameters`.")],
    grid: Annotated[
        Path, Option(help="File of rows as CSV; or YAML with rows, or with lists to combine.")
    ],
    out: Annotated[Path, Option(help="Output folder for notebooks and table.")] = Path(
        "batch-output"
    ),
    workers: Annotated[
        int | None, Option(min=1, help="Number of parallel workers; by default one per processor.")
    ] = None,
    timeout: Annotated[float | None, Option(min=0.1, help="Maximum seconds per notebook.")] = None,
    resume: Annotated[
        bool, Option("--resume/--fresh", help="Keep completed rows, or run all rows again.")
    ] = True,
    preload: Annotated[
        list[str] | None,
        Option(help="Module that kernels import in advance; repeatable, or `none`."),
    ] = None,
    fork: Annotated[
        bool, Option("--fork/--no-fork", help="Fork kernels, or start each kernel in advance.")
    ] = True,
    dask: Annotated[
        str | None, Option(help="Run notebooks on the workers of this Dask scheduler.")
    ] = None,
    executor: Annotated[
        str | None,
        Option(
            help="Run notebooks on the concurrent.futures.Executor that `module:factory` makes."
        ),
    ] = None,
    host: Annotated[
        str | None,
        Option(
            help="Address at which the local engine listens for these workers;"
            " 127.0.0.1 by default."
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        Option(
            help="Server for the workers, instead of the local engine; TOOLKIT_BASE_URL by default."
        ),
    ] = None,
    data_dir: Annotated[
        Path | None, Option(help="Data directory of the local engine; ./.toolkit by default.")
    ] = None,
    sandbox: Annotated[
        bool, Option("--sandbox", help="Simulated vendors: no keys, no bills.")
    ] = False,
    max_cost_usd: Annotated[
        float, Option(min=0, help="Maximum total cost of notebooks on workers.")
    ] = 5.0,
    as_json: AsJson = False,
) -> None:
    """Run a notebook once for each row of a grid, side by side in warm kernels.

    Progress is printed on stderr. A second run resumes after the rows that completed.
    Exit code 1 if a row failed.
    """
    from toolkit.batch.remote.executors import BatchOptions, EngineChoice, choose_workers
    from toolkit.batch.runner import run_batch

    choice = EngineChoice(base_url, data_dir, sandbox, host, max_cost_usd=max_cost_usd)
    remote = choose_workers(dask, executor, choice)
    modules = None if preload is None else tuple(name for name in preload if name != "none")
    options = BatchOptions(notebook, out, workers, timeout, resume, modules, fork, remote)
    table = out / "results.csv"
    try:
        outcomes = run_batch(options, grid)
    except KeyboardInterrupt:
        print(escape_controls(f"Stopped. Completed rows are in {table}."), file=sys.stderr)
        raise
    failures = sum(outcome.status == "failed" for outcome in outcomes)
    if as_json:
        report = json.loads((out / "report.json").read_text(encoding="utf-8"))
        print_json({**report, "out": str(out)})
    else:
        reused = sum(outcome.reused for outcome in outcomes)
        before = f", {reused} of them earlier" if reused else ""
        completed = f"{len(outcomes) - failures} completed{before}, {failures} failed"
        print(escape_controls(f"{completed}: {table}"))
    if failures:
        raise typer.Exit(1)
