"""Shell completion: values that are offered after the Tab key, by the type of the parameter.

Closed sets are `Literal` types, and complete by themselves. The values here are those of this
installation: a lookup at a server would take too long. A lookup that fails offers nothing, so that
it does not disturb typing.
"""

import logging
import os
from collections.abc import Callable, Iterable
from functools import wraps
from typing import TypeAlias

import typer

Suggestions: TypeAlias = Iterable[tuple[str, str]]
Search: TypeAlias = Callable[[typer.Context, str], Suggestions]
Completion: TypeAlias = Callable[[typer.Context, str], list[tuple[str, str]]]


def completion(find: Search) -> Completion:
    """Make a completion from a function: offer its results that begin with the typed text."""

    @wraps(find)
    def complete(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
        before = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        try:
            suggestions = list(find(ctx, incomplete))
        except Exception:  # no error may disturb typing
            return []
        finally:
            logging.disable(before)
        return [
            (value, description)
            for value, description in suggestions
            if value.startswith(incomplete)
        ]

    return complete


@completion
def variables(ctx: typer.Context, incomplete: str) -> Suggestions:  # noqa: ARG001 - as for all
    """Offer the names of the environment variables that are set."""
    return [(name, "") for name in sorted(os.environ)]


@completion
def profiles(ctx: typer.Context, incomplete: str) -> Suggestions:  # noqa: ARG001 - as for all
    """Offer the names of the stored profiles, without reading any key."""
    from toolkit.profiles.files import list_profile_names

    return [(name, "") for name in list_profile_names()]


@completion
def capabilities(ctx: typer.Context, incomplete: str) -> Suggestions:  # noqa: ARG001 - as for all
    """Offer the capabilities by name, or with their versions once an `@` was typed."""
    from toolkit.capabilities import load_capabilities

    known = load_capabilities()
    if "@" in incomplete:
        return [(f"{entry.id}@{entry.version}", entry.title) for entry in known]
    return [(entry.id, entry.title) for entry in known]


@completion
def fields_of_input(ctx: typer.Context, incomplete: str) -> Suggestions:  # noqa: ARG001 - as for all
    """Offer `name=` for each input field of the capability that the command line names."""
    from toolkit.capabilities import load_capabilities

    # The newest version of each capability comes last.
    newest = {capability.id: capability for capability in load_capabilities()}
    capability = newest[str(ctx.params.get("name") or "").partition("@")[0]]
    return [(f"{field}=", "") for field in capability.input_model.model_fields]


@completion
def providers(ctx: typer.Context, incomplete: str) -> Suggestions:  # noqa: ARG001 - as for all
    """Offer the ids of the vendors."""
    from toolkit.vendors import load_vendors

    return [(name, vendor.title) for name, vendor in load_vendors().items()]


@completion
def vendors_to_connect(ctx: typer.Context, incomplete: str) -> Suggestions:
    """Offer the ids of the vendors, and `all` for all of them."""
    return [("all", "all vendors whose variable is set"), *providers(ctx, incomplete)]


@completion
def statuses(ctx: typer.Context, incomplete: str) -> Suggestions:  # noqa: ARG001 - as for all
    """Offer the states of the work of the command's group, such as `tasks`."""
    from toolkit.contract.operations.work_queries import RunsQuery, TasksQuery, WorkflowsQuery

    queries = {"tasks": TasksQuery, "workflows": WorkflowsQuery}
    group = str(ctx.parent.info_name) if ctx.parent else ""
    return [(status, "") for status in queries.get(group, RunsQuery).STATUSES]
