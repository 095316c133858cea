"""`toolkit demo`."""

from pathlib import Path
from typing import Annotated

import typer


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
