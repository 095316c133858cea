"""`toolkit batch`, and `toolkit demo`, which runs a notebook as a batch does."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.output import escape_controls, print_json
from toolkit.cli.target import AsJson


def batch(
    notebook: Annotated[Path, typer.Argument(help="With a cell tagged `parameters`.")],
    grid: Annotated[Path, typer.Option(help="Rows as CSV; or YAML: rows, or lists to combine.")],
    out: Annotated[Path, typer.Option(help="Where notebooks and table go.")] = Path("batch-output"),
    workers: Annotated[
        int | None, typer.Option(min=1, help="Side by side; by default one a processor.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0.1, help="Seconds that a notebook may take.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume/--fresh", help="Keep what completed before, or run all.")
    ] = True,
    preload: Annotated[
        list[str] | None,
        typer.Option(help="A module that kernels have imported; repeatable, or `none`."),
    ] = None,
    fork: Annotated[
        bool, typer.Option("--fork/--no-fork", help="Fork kernels, or start each ahead of need.")
    ] = True,
    renew_after: Annotated[
        int, typer.Option(min=1, help="Replace what kernels are forked from after so many.")
    ] = 500,
    dask: Annotated[
        str | None, typer.Option(help="Run notebooks on the workers of this Dask scheduler.")
    ] = None,
    executor: Annotated[
        str | None,
        typer.Option(
            help="Run them by what a `module:factory` makes: a concurrent.futures.Executor."
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            help="The address by which those workers reach the engine here, which listens there;"
            " 127.0.0.1 by default."
        ),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(help="The server that they ask instead; TOOLKIT_BASE_URL.")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="The folder of the engine here; ./.toolkit by default.")
    ] = None,
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help="Its vendors are simulated: no keys, no bills.")
    ] = False,
    max_cost_usd: Annotated[
        float, typer.Option(min=0, help="Maximum total cost of notebooks on workers.")
    ] = 5.0,
    as_json: AsJson = False,
) -> None:
    """Run a notebook once for each row of a grid, side by side in warm kernels.

    Progress is printed on stderr. A second run resumes after the rows that completed.
    """
    from toolkit.batch.options import BatchOptions
    from toolkit.batch.remote.executors import EngineChoice, choose_workers
    from toolkit.batch.runner import run_batch

    choice = EngineChoice(base_url, data_dir, sandbox, host, max_cost_usd=max_cost_usd)
    remote = choose_workers(dask, executor, choice)
    modules = None if preload is None else tuple(name for name in preload if name != "none")
    options = BatchOptions(
        notebook, out, workers, timeout, resume, modules, fork, renew_after, remote
    )
    table = out / "results.csv"
    try:
        outcomes = run_batch(options, grid)
    except KeyboardInterrupt:
        print(escape_controls(f"Stopped; what is done is in {table}."), file=sys.stderr)
        raise
    failures = sum(outcome.status == "failed" for outcome in outcomes)
    if as_json:
        report = json.loads((out / "report.json").read_text(encoding="utf-8"))
        print_json({**report, "out": str(out)})
    else:
        reused = sum(outcome.reused for outcome in outcomes)
        before = f", {reused} of them before" if reused else ""
        completed = f"{len(outcomes) - failures} completed{before}, {failures} failed"
        print(escape_controls(f"{completed}: {table}"))
    if failures:
        raise typer.Exit(1)


def demo(
    topic: Annotated[str, typer.Option(help="What the card and the summary are about.")] = (
        "tidal power"
    ),
    out: Annotated[Path, typer.Option(help="Where the results go.")] = Path("demo-output"),
) -> None:
    """Make a social card with a spoken summary: one objective in, reviewed artifacts out."""
    from toolkit.batch.demo import run_demo

    if not run_demo(topic, out):
        raise typer.Exit(1)
