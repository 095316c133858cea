"""The matcher through which IPython completes toolkit calls (matcher API v2)."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from IPython.core.completer import (
    CompletionContext,
    SimpleCompletion,
    SimpleMatcherResult,
    context_matcher,
)

from toolkit.notebook.completion.call_sites import find_call_site
from toolkit.notebook.completion.calls import CallCompleter, find_notebook_feed
from toolkit.notebook.completion.cells import Completion, complete_magic, complete_workflow
from toolkit.notebook.completion.feeds import Proposal

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

IDENTIFIER = "toolkit"
NO_BREAK = "\N{NO-BREAK SPACE}"


def find_completion(text: str, names: Mapping[str, Any]) -> Completion | None:
    """Find the completion of a cell; return None if its code does not use the toolkit.

    Args:
        text: text of the cell up to the cursor.
        names: variables of the notebook.
    """
    feed = find_notebook_feed(names)
    first, newline, below = text.lstrip("\n").partition("\n")
    if newline and first.startswith("%%"):
        is_workflow = re.match(r"%%workflow\b", first) is not None
        return complete_workflow(below, feed) if is_workflow else None
    line = text.rpartition("\n")[2]
    if line.lstrip().startswith("%"):
        return complete_magic(line.lstrip(), feed, names)
    site = find_call_site(text)
    if site is None:
        return None
    found = CallCompleter(names, text).list_proposals(site)
    if found is None:
        return None
    are_names = any(one.text.endswith("=") for one in found)  # names of arguments
    if not (site.in_string or site.is_key or site.prefix or are_names):
        found = [Proposal(f'"{one.text}"', one.about) for one in found]
    return Completion(site.prefix, found)


def select_proposals(found: Completion) -> list[Proposal]:
    """Select the proposals that begin with the prefix, otherwise proposals that contain it."""
    wanted = found.prefix.casefold()
    fitting = [one for one in found.proposals if one.text.casefold().startswith(wanted)]
    return fitting or [one for one in found.proposals if wanted in one.text.casefold()]


def make_matcher(shell: "InteractiveShell") -> Any:
    """Make the matcher of a shell; if it has proposals, it suppresses other matchers."""

    @context_matcher(identifier=IDENTIFIER, priority=100)  # type: ignore[untyped-decorator]
    def match_toolkit(context: CompletionContext) -> SimpleMatcherResult:
        written = context.full_text.split("\n")[: context.cursor_line + 1]
        written[-1] = written[-1][: context.cursor_position]
        try:
            found = find_completion("\n".join(written), shell.user_ns)
        except Exception:  # a failed completion must never disturb a person
            found = None
        if found is None:
            return SimpleMatcherResult(completions=[], suppress=False)
        chosen = [
            # JupyterLab wraps the description next to a name, and its lines overlap.
            SimpleCompletion(one.text, type=one.about.replace(" ", NO_BREAK))
            for one in select_proposals(found)
        ]
        return SimpleMatcherResult(
            completions=chosen,
            matched_fragment=found.prefix,
            suppress=bool(chosen),
            ordered=True,
        )

    return match_toolkit


def attach_matcher(shell: "InteractiveShell") -> None:
    """Add the matcher to a shell, unless the shell has it already."""
    matchers = shell.Completer.custom_matchers
    if all(getattr(one, "matcher_identifier", "") != IDENTIFIER for one in matchers):
        matchers.append(make_matcher(shell))
