"""The decorator of completions, and completions without a server or a data directory."""

import logging
import os
from collections.abc import Callable, Iterable
from functools import wraps
from typing import TypeAlias

import typer

MAX_COMPLETIONS = 50
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
