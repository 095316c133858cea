"""The commands of `toolkit capabilities`."""

from typing import Any

from toolkit.cli import options
from toolkit.cli.options import read_command
from toolkit.cli.output import ClientOutput
from toolkit.cli.resource_commands import make_group

app = make_group("The capabilities, with the schemas of input and output.")


@app.command("list")
@read_command
def list_them(shell: ClientOutput) -> None:
    """List the capabilities, and the providers that serve them."""
    columns = ("capability", "title", "served_by", "yields")
    shell.print_items("/capabilities", columns, _build_row)


def _build_row(record: dict[str, Any]) -> dict[str, Any]:
    vendors = record["source"]["routing"]["allowed_connections"]
    name = f"{record['id']}@{record['version']}"
    return {**record, "capability": name, "served_by": vendors or "this machine"}


@app.command()
@read_command
def show(shell: ClientOutput, name: options.Name) -> None:
    """Show a capability, with the schemas of its input and output."""
    shell.print_record(shell.read(f"/capabilities/{name}"))
