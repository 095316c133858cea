"""The commands that resources have in common, made by the resource's name on the client."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

from toolkit.cli import completion
from toolkit.cli.options import All, Id, Limit, Note, Quiet, Tags, existing_command, read_command
from toolkit.cli.output import ClientOutput, escape_controls
from toolkit.cli.work import take_up, wait_for_work
from toolkit.contract.errors import ServiceError
from toolkit.contract.operations.index import list_entries


class _ResourceGroup(TyperGroup):
    """A group whose name alone runs its first command, which lists or shows."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the first command if no command is named, and none can follow."""
        is_typed = bool(ctx.resilient_parsing) and not args  # and may go on with any command
        if not is_typed and (not args or (args[0].startswith("-") and args[0] != "--help")):
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Complete the commands, and the options of the first command."""
        items = super().shell_complete(ctx, incomplete)
        first = next(iter(self.commands.values()))
        if incomplete.startswith("-"):
            names = {item.value for item in items}
            options = first.shell_complete(ctx.__class__(first, parent=ctx), incomplete)
            items += [item for item in options if item.value not in names]
        return items


def make_group(help: str) -> typer.Typer:
    """Make the group of a resource; its name alone runs the first command that is added."""
    return typer.Typer(cls=_ResourceGroup, help=help)


def add_resource_commands(
    app: typer.Typer,
    resource: str,
    columns: Sequence[str],
    rows: str = "",
    row_columns: Sequence[str] = (),
) -> None:
    """Add the commands that the operations table has for many resources: read, end, delete.

    Args:
        rows: list of records that `show` prints below the facts.
    """
    operations = {operation.verb: operation for operation in list_entries(resource)}
    path = operations["list"].path.removeprefix("/v1")
    if "annotate" in operations:
        _add_filtered_list(app, path, columns)
    else:
        _add_list_command(app, path, columns)
    _add_show_command(app, path, rows, row_columns)
    if "delete" in operations:
        _add_delete_command(app, resource)
    if "events" in operations:
        _add_follow_commands(app, resource)
    if "annotate" in operations:
        _add_annotate_command(app, resource)


def _add_list_command(app: typer.Typer, path: str, columns: Sequence[str]) -> None:
    @app.command("list")
    @read_command
    def list_them(shell: ClientOutput, limit: Limit = 20, everything: All = False) -> None:
        """List the records, newest first."""
        shell.print_newest(path, columns, None if everything else limit)


def _add_filtered_list(app: typer.Typer, path: str, columns: Sequence[str]) -> None:

    @app.command("list")
    @read_command
    def list_them(
        shell: ClientOutput,
        limit: Limit = 20,
        everything: All = False,
        capability: Annotated[
            str | None,
            Option(
                help="Only work of this capability, or with a node of it.",
                autocompletion=completion.capabilities,
            ),
        ] = None,
        provider: Annotated[
            str | None,
            Option(
                help="Only work that this provider served.", autocompletion=completion.providers
            ),
        ] = None,
        status: Annotated[
            str | None,
            Option(help="Only work with this status.", autocompletion=completion.statuses),
        ] = None,
        tag: Annotated[
            list[str] | None,
            Option(help="Only work with this tag; repeatable, for work with all of them."),
        ] = None,
        since: Annotated[
            str | None,
            Option(help="Only work created at this time or day, or later, such as 2026-11-20."),
        ] = None,
        until: Annotated[str | None, Option(help="Only work created before this time.")] = None,
        min_cost_usd: Annotated[
            float | None, Option(min=0, help="Only work that cost at least this, in US dollars.")
        ] = None,
        max_cost_usd: Annotated[
            float | None, Option(min=0, help="Only work that cost at most this, in US dollars.")
        ] = None,
        q: Annotated[str | None, Option(help="Only work with this text in the input.")] = None,
    ) -> None:
        """List the work, newest first: all, or only work that matches every filter."""
        shell.print_newest(
            path,
            columns,
            None if everything else limit,
            capability=capability,
            provider=provider,
            status=status,
            tag=",".join(tag) if tag else None,
            since=since,
            until=until,
            min_cost_usd=None if min_cost_usd is None else str(min_cost_usd),
            max_cost_usd=None if max_cost_usd is None else str(max_cost_usd),
            q=q,
        )


def _add_annotate_command(app: typer.Typer, resource: str) -> None:

    @app.command()
    @existing_command
    def annotate(
        shell: ClientOutput,
        id: Id,
        tag: Tags = None,
        note: Note = None,
        no_tags: Annotated[bool, Option("--no-tags", help="Remove all tags.")] = False,
    ) -> None:
        """Replace the tags or the note of the work; an omitted option changes nothing."""
        tags = [] if no_tags else tag or None
        shell.print_record(getattr(shell.client, resource).annotate(id, tags=tags, note=note))


def _add_show_command(app: typer.Typer, path: str, rows: str, columns: Sequence[str]) -> None:
    @app.command()
    @read_command
    def show(shell: ClientOutput, id: Id) -> None:
        """Show the record with an id."""
        shell.print_record(shell.read(f"{path}/{id}"), rows, columns)


def _add_delete_command(app: typer.Typer, resource: str) -> None:
    @app.command()
    @existing_command
    def delete(shell: ClientOutput, id: Id) -> None:
        """Delete the record with an id, and print the deleted record."""
        shell.print_record(getattr(shell.client, resource).delete(id))


def add_execution_commands(app: typer.Typer, resource: str) -> None:
    """Add the commands that runs and jobs have in common."""
    facts = ("id", "capability", "status", "provider", "cost_usd", "latency_ms", "created_at")
    columns = (*facts, "input")
    attempt = ("n", "provider", "model", "status", "cost_usd", "started_at", "ended_at")
    add_resource_commands(app, resource, columns, "attempts", attempt)


def _add_follow_commands(app: typer.Typer, resource: str) -> None:
    @app.command()
    @existing_command
    def wait(shell: ClientOutput, id: Id, quiet: Quiet = False) -> None:
        """Wait until the work is over, with progress on stderr, and show it."""
        work = getattr(shell.client, resource).get(id)
        take_up(shell, id)
        shell.print_record(wait_for_work(shell, resource, work, quiet))

    @app.command()
    @existing_command
    def cancel(shell: ClientOutput, id: Id) -> None:
        """Cancel the work; ended work does not change."""
        shell.print_record(getattr(shell.client, resource).cancel(id))

    @app.command()
    @read_command
    def events(
        shell: ClientOutput,
        id: Id,
        after: Annotated[int, Option(min=0, help="Start with the event after this number.")] = 0,
        follow: Annotated[
            bool, Option("--follow", "-f", help="Continue with new events until the work ends.")
        ] = False,
    ) -> None:
        """Print the events of the work, a line for each; with --json, a JSON object for each."""
        from toolkit.display.text import format_event

        service = getattr(shell.client, resource)
        if follow:
            take_up(shell, id)
        try:
            for event in shell.client.events(id, after) if follow else service.events(id, after):
                after = event.n
                if shell.as_json:
                    shell.print_json(event.model_dump(mode="json"), indent=None)
                else:
                    print(event.n, escape_controls(format_event(event)), flush=True)
        except ServiceError:
            if follow:
                shell.print_note(f"Next: toolkit {resource} events {id} --follow --after {after}")
            raise
