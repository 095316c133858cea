"""The commands of work with tags and notes: lists by a filter, and other tags or another note."""

from collections.abc import Sequence
from typing import Annotated

import typer

from toolkit.cli import completion
from toolkit.cli.options import All, Id, Limit, Note, Tags, existing_command, read_command
from toolkit.cli.output import ClientOutput


def add_filtered_list(app: typer.Typer, path: str, columns: Sequence[str]) -> None:
    """Add the command that lists work, all or by a filter.

    Args:
        app: the group.
        path: of the list, below `/v1`.
        columns: of the list.
    """

    @app.command("list")
    @read_command
    def list_them(
        shell: ClientOutput,
        limit: Limit = 20,
        everything: All = False,
        capability: Annotated[
            str | None,
            typer.Option(
                help="Only of this capability; of graphs, in one of their nodes.",
                autocompletion=completion.capabilities,
            ),
        ] = None,
        provider: Annotated[
            str | None,
            typer.Option(
                help="Only what this provider served.", autocompletion=completion.providers
            ),
        ] = None,
        status: Annotated[
            str | None,
            typer.Option(help="Only in this state.", autocompletion=completion.statuses),
        ] = None,
        tag: Annotated[
            list[str] | None, typer.Option(help="Only with this tag; repeatable: with all.")
        ] = None,
        since: Annotated[
            str | None, typer.Option(help="Only from this time or day on, such as 2026-11-20.")
        ] = None,
        until: Annotated[str | None, typer.Option(help="Only from before this time.")] = None,
        min_cost_usd: Annotated[
            float | None, typer.Option(min=0, help="Only what cost this or more.")
        ] = None,
        max_cost_usd: Annotated[
            float | None, typer.Option(min=0, help="Only what cost this or less.")
        ] = None,
        q: Annotated[str | None, typer.Option(help="Only with this text in the input.")] = None,
    ) -> None:
        """List them, newest first: all, or those that every filter is true of."""
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


def add_annotate(app: typer.Typer, resource: str) -> None:
    """Add the command that gives work other tags, or another note."""

    @app.command()
    @existing_command
    def annotate(
        shell: ClientOutput,
        id: Id,
        tag: Tags = None,
        note: Note = None,
        no_tags: Annotated[bool, typer.Option("--no-tags", help="Take its tags away.")] = False,
    ) -> None:
        """Give one other tags, or another note; what is left out stays."""
        tags = [] if no_tags else tag or None
        shell.print_record(getattr(shell.client, resource).annotate(id, tags=tags, note=note))
