"""The commands that resources have in common, made for one by its name on the client."""

from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from toolkit.cli import complete
from toolkit.cli.options import Quiet, looking, on_existing
from toolkit.cli.output import MOST, Shell, tame
from toolkit.cli.work import take_up, waited
from toolkit.contract.errors import ServiceError

Id = Annotated[
    str,
    typer.Argument(metavar="ID", help="The id that it was given.", autocompletion=complete.own_ids),
]
Limit = Annotated[int, typer.Option(min=1, help="How many to show, the newest first.")]
All = Annotated[bool, typer.Option("--all", help="Show all there are.")]


class _Area(TyperGroup):
    """A group whose name alone runs its first command, which is to list or to show."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the first command where none is named, and none can follow."""
        is_typed = bool(ctx.resilient_parsing) and not args  # and may go on with any command
        if not is_typed and (not args or (args[0].startswith("-") and args[0] != "--help")):
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Complete the commands, and the options of the first one."""
        found = super().shell_complete(ctx, incomplete)
        first = next(iter(self.commands.values()))
        if incomplete.startswith("-"):
            known = {item.value for item in found}
            more = first.shell_complete(ctx.__class__(first, parent=ctx), incomplete)
            found += [item for item in more if item.value not in known]
        return found


def group(help: str) -> typer.Typer:  # noqa: A002 - typer's word
    """Make the group of a resource; the first command added is what its name alone runs."""
    return typer.Typer(cls=_Area, help=help)


def reads(
    app: typer.Typer,
    path: str,
    columns: Sequence[str],
    rows: str = "",
    of: Sequence[str] = (),
) -> None:
    """Add `list` and `show`.

    Args:
        app: the group.
        path: where they are, below `/v1`.
        columns: of the list.
        rows: the list of records that `show` prints below the facts.
        of: the columns of those.
    """

    @app.command("list")
    @looking
    def list_them(shell: Shell, limit: Limit = 20, everything: All = False) -> None:
        """List them, newest first."""
        found = shell.items(f"/{path}", MOST if everything else min(limit + 1, MOST))
        things: list[Any] = list(found if everything else islice(found, limit + 1))
        more = not everything and len(things) > limit
        shell.table(things[:limit] if more else things, columns)
        if more:
            shell.note("There are more: --all, or a higher --limit.")

    @app.command()
    @looking
    def show(shell: Shell, id: Id) -> None:  # noqa: A002 - the contract's word
        """Show one."""
        shell.show(shell.read(f"/{path}/{id}"), rows, of)


def deletes(app: typer.Typer, area: str) -> None:
    """Add `delete`."""

    @app.command()
    @on_existing
    def delete(shell: Shell, id: Id) -> None:  # noqa: A002
        """Delete one; what it was is printed."""
        shell.show(getattr(shell.client, area).delete(id))


def executions(app: typer.Typer, area: str) -> None:
    """Add the commands that runs and jobs have in common."""
    columns = ("id", "capability", "status", "provider", "cost_usd", "latency_ms", "created_at")
    attempt = ("n", "provider", "model", "status", "cost_usd", "started_at", "ended_at")
    reads(app, area, columns, "attempts", attempt)
    follows(app, area)


def follows(app: typer.Typer, area: str) -> None:
    """Add `wait`, `cancel` and `events`."""

    @app.command()
    @on_existing
    def wait(shell: Shell, id: Id, quiet: Quiet = False) -> None:  # noqa: A002
        """Wait until one is over, with progress on stderr, and show it."""
        work = getattr(shell.client, area).get(id)
        take_up(shell, id)
        shell.show(waited(shell, area, work, quiet))

    @app.command()
    @on_existing
    def cancel(shell: Shell, id: Id) -> None:  # noqa: A002
        """End one; what has ended stays as it is."""
        shell.show(getattr(shell.client, area).cancel(id))

    @app.command()
    @looking
    def events(
        shell: Shell,
        id: Id,  # noqa: A002
        after: Annotated[int, typer.Option(min=0, help="From the one after this number.")] = 0,
        follow: Annotated[
            bool, typer.Option("--follow", "-f", help="Go on with new ones until it is over.")
        ] = False,
    ) -> None:
        """Print what happened to one, a line an event; with --json, a JSON object a line."""
        from toolkit.display.text import event_line

        area_of = getattr(shell.client, area)
        if follow:
            take_up(shell, id)
        try:
            for event in shell.client.events(id, after) if follow else area_of.events(id, after):
                after = event.n
                if shell.as_json:
                    shell.print_json(event.model_dump(mode="json"), indent=None)
                else:
                    print(event.n, tame(event_line(event)), flush=True)
        except ServiceError:
            if follow:
                shell.note(f"Next: toolkit {area} events {id} --follow --after {after}")
            raise
