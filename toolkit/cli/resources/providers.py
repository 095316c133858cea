"""The commands of `toolkit providers`."""

from toolkit.cli.options import read_command
from toolkit.cli.output import ClientOutput
from toolkit.cli.resource_commands import make_group

app = make_group("The vendor catalogue.")


@app.command("list")
@read_command
def list_them(shell: ClientOutput) -> None:
    """List the vendor catalogue."""
    columns = ("id", "label", "title", "capabilities", "conventional_variable", "connected")
    shell.print_items("/providers", columns)
