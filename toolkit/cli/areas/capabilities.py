"""`toolkit capabilities`."""

from typing import Any

from toolkit.cli import options
from toolkit.cli.options import looking
from toolkit.cli.output import Shell
from toolkit.cli.verbs import group

app = group("What can be asked for.")


@app.command("list")
@looking
def list_them(shell: Shell) -> None:
    """List what can be asked for, and who serves it."""
    shell.table(shell.items("/capabilities"), ("capability", "title", "served_by", "yields"), _row)


def _row(record: dict[str, Any]) -> dict[str, Any]:
    vendors = record["source"]["routing"]["allowed_connections"]
    name = f"{record['id']}@{record['version']}"
    return {**record, "capability": name, "served_by": vendors or "this machine"}


@app.command()
@looking
def show(shell: Shell, name: options.Name) -> None:
    """Show one, with the schemas of its input and output."""
    shell.show(shell.read(f"/capabilities/{name}"))
