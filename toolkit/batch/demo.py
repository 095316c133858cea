"""The demo: papermill runs the first scenario notebook in the sandbox and shows its results."""

import json
import logging
import time
import warnings
from contextlib import closing
from datetime import datetime
from importlib.resources import files
from io import TextIOBase
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from toolkit.batch.kernel.sources import KernelSource, prepare_python
from toolkit.contract.money import format_usd

NOTEBOOK = "01_social_card.ipynb"
CELL_TIMEOUT_S = 120
# The notebook's own imports, and the imports of its pictures that take long.
PRELOADS = ("toolkit:Client", "toolkit.local", "matplotlib.figure", "PIL:Image")


def find_notebook() -> Path:
    """Find the scenario notebook: in a checkout next to the package, in an installation inside it.

    Raises:
        FileNotFoundError: if the installation is incomplete.
    """
    package = Path(str(files("toolkit")))
    for folder in (package.parent / "notebooks", package / "notebook"):
        if (folder / NOTEBOOK).is_file():
            return folder / NOTEBOOK
    raise FileNotFoundError(f"{NOTEBOOK} is not part of this installation")


class _LineStream(TextIOBase):
    """A text stream that shows the notebook's output line by line while it is printed."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def write(self, text: str) -> int:
        for line in text.splitlines():
            if line.strip():
                self._console.print(Text("  " + line, style="dim"))
        return len(text)


def run_demo(topic: str, out: Path) -> bool:
    """Run the notebook, then print its nodes, its review and the paths of its results.

    Returns:
        whether the review passed.
    """
    console = Console()
    out.mkdir(parents=True, exist_ok=True)
    console.print(f"A social card with a spoken summary about [bold]{topic}[/], in the sandbox.")
    started = time.monotonic()
    executed = out / NOTEBOOK
    _execute_notebook(topic, out, executed, console)
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    console.print(_build_node_table(report["workflow"]))
    _print_review(console, report["task"])
    console.print(f"\nTook {time.monotonic() - started:.1f} s. Made:")
    for path in [*report["paths"], str(executed)]:
        console.print(f"  {path}", soft_wrap=True)
    return bool(report["task"]["status"] == "completed")


def _execute_notebook(topic: str, out: Path, executed: Path, console: Console) -> None:
    source = KernelSource(fork=True, spares=0)
    with closing(source), warnings.catch_warnings():
        # As papermill will request it. The kernel imports its modules while this process does.
        prepare_python(source, PRELOADS)
        # Deprecations inside papermill and its kernel client do not concern the reader.
        warnings.simplefilter("ignore")
        logging.getLogger("papermill").setLevel(logging.ERROR)
        from papermill.execute import execute_notebook

        from toolkit.batch.papermill_engine import ENGINE_NAME, register_engine

        register_engine()
        execute_notebook(
            str(find_notebook()),
            str(executed),
            parameters={"topic": topic, "out_dir": str(out)},
            kernel_name="python3",
            engine_name=ENGINE_NAME,
            source=source,
            preload=PRELOADS,
            autosave_cell_every=0,
            progress_bar=False,
            log_output=False,
            stdout_file=_LineStream(console),
            stderr_file=_LineStream(console),
            execution_timeout=CELL_TIMEOUT_S,
        )


def _build_node_table(workflow: dict[str, Any]) -> Table:
    table = Table(title="Nodes", title_justify="left", box=None, padding=(0, 1, 0, 0))
    for name in ("node", "capability", "provider", "status"):
        table.add_column(name, no_wrap=True)
    for name in ("retries", "cost", "seconds"):
        table.add_column(name, justify="right")
    for node in workflow["nodes"]:
        table.add_row(
            node["id"],
            node["capability"],
            node["provider"] or "this machine",
            node["status"],
            str(node["retry_count"]),
            format_usd(node["cost_usd"]),
            _format_time(node["started_at"], node["completed_at"]),
        )
    return table


def _format_time(started_at: str | None, completed_at: str | None) -> str:
    """Format the seconds that a node took; "" if it never ran, or is still running."""
    if not started_at or not completed_at:
        return ""
    took = datetime.fromisoformat(completed_at) - datetime.fromisoformat(started_at)
    return f"{took.total_seconds():.2f}"


def _print_review(console: Console, task: dict[str, Any]) -> None:
    review = task["review"]
    if review is None:
        error = task.get("error") or {}
        console.print(f"\n[bold]No review[/]: {error.get('code')}: {error.get('message')}")
        return
    scores = {"score": review["score"], **(review["criteria"] or {})}
    figures = [f"{k.replace('_', ' ')} {v:.2f}" for k, v in scores.items() if v is not None]
    console.print(f"\n[bold]Review[/]: {', '.join([review['decision'], *figures])}")
    for issue in review["issues"]:
        console.print(Text(f"  - {issue}"))
    cost = task["cost_usd"]
    console.print("Cost: " + format_usd(cost) + ("" if cost is None else " (simulated)"))
