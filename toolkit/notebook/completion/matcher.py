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
    proposals = CallCompleter(names, text).list_proposals(site)
    if proposals is None:
        return None
    are_names = any(proposal.text.endswith("=") for proposal in proposals)  # names of arguments
    if not (site.in_string or site.is_key or site.prefix or are_names):
        proposals = [Proposal(f'"{proposal.text}"', proposal.about) for proposal in proposals]
    return Completion(site.prefix, proposals)


def select_proposals(completion: Completion) -> list[Proposal]:
    """Select the proposals that begin with the prefix, otherwise proposals that contain it."""
    prefix = completion.prefix.casefold()
    fitting = [
        proposal for proposal in completion.proposals if proposal.text.casefold().startswith(prefix)
    ]
    return fitting or [
        proposal for proposal in completion.proposals if prefix in proposal.text.casefold()
    ]


def make_matcher(shell: "InteractiveShell") -> Any:
    """Make the matcher of a shell; if it has proposals, it suppresses other matchers."""

    @context_matcher(identifier=IDENTIFIER, priority=100)  # type: ignore[untyped-decorator]
    def match_toolkit(context: CompletionContext) -> SimpleMatcherResult:
        lines = context.full_text.split("\n")[: context.cursor_line + 1]
        lines[-1] = lines[-1][: context.cursor_position]
        try:
            completion = find_completion("\n".join(lines), shell.user_ns)
        except Exception:  # a failed completion must never disturb a person
            completion = None
        if completion is None:
            return SimpleMatcherResult(completions=[], suppress=False)
        completions = [
            # JupyterLab wraps the description next to a name, and its lines overlap.
            SimpleCompletion(proposal.text, type=proposal.about.replace(" ", NO_BREAK))
            for proposal in select_proposals(completion)
        ]
        return SimpleMatcherResult(
            completions=completions,
            matched_fragment=completion.prefix,
            suppress=bool(completions),
            ordered=True,
        )

    return match_toolkit


def attach_matcher(shell: "InteractiveShell") -> None:
    """Add the matcher to a shell, unless the shell has it already."""
    matchers = shell.Completer.custom_matchers
    if all(getattr(matcher, "matcher_identifier", "") != IDENTIFIER for matcher in matchers):
        matchers.append(make_matcher(shell))
