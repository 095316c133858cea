"""`toolkit providers`."""

from toolkit.cli.options import looking
from toolkit.cli.output import Shell
from toolkit.cli.verbs import group

app = group("The vendors that there are.")


@app.command("list")
@looking
def list_them(shell: Shell) -> None:
    """List the vendor catalogue."""
    columns = ("id", "label", "title", "capabilities", "conventional_variable", "connected")
    shell.table(shell.items("/providers"), columns)
