"""`toolkit catalog`."""

from toolkit.cli.options import looking
from toolkit.cli.output import Shell
from toolkit.cli.verbs import group

app = group("What can be rented or asked for, with list prices.")


@app.command()
@looking
def models(shell: Shell) -> None:
    """List every vendor's models."""
    columns = ("provider", "model", "kind", "prices_usd", "as_of")
    shell.table(shell.items("/catalog/models"), columns)


@app.command()
@looking
def gpus(shell: Shell) -> None:
    """List the GPUs of the cloud that is connected."""
    shell.table(
        shell.items("/catalog/gpus"), ("id", "name", "pool", "memory_gb", "prices_per_hour_usd")
    )
