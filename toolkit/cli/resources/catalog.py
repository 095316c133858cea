"""The commands of `toolkit catalog`."""

from toolkit.cli.options import read_command
from toolkit.cli.output import ClientOutput
from toolkit.cli.resource_commands import make_group

app = make_group("The GPUs and models that vendors offer, with list prices.")


@app.command()
@read_command
def models(shell: ClientOutput) -> None:
    """List every vendor's models."""
    columns = ("provider", "model", "kind", "prices_usd", "as_of")
    shell.print_items("/catalog/models", columns)


@app.command()
@read_command
def gpus(shell: ClientOutput) -> None:
    """List the GPUs of the connected cloud."""
    columns = ("id", "name", "pool", "memory_gb", "prices_per_hour_usd")
    shell.print_items("/catalog/gpus", columns)
