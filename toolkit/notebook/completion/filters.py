"""Completion of what is filtered, tagged and compared: runs, workflows and tasks."""

from toolkit.contract.operations.work_queries import (
    RunsQuery,
    TasksQuery,
    WorkflowsQuery,
    WorkQuery,
)
from toolkit.notebook.completion.feeds import ClientFeed, Proposal

_QUERIES: dict[str, type[WorkQuery]] = {
    "runs": RunsQuery,
    "workflows": WorkflowsQuery,
    "tasks": TasksQuery,
}
COMPARED_PATHS = {"run": "/runs", "wfl": "/workflows", "job": "/jobs"}


def complete_filter(
    feed: ClientFeed, area: str, name: str, capabilities: list[Proposal]
) -> list[Proposal] | None:
    """Complete the value of a filter, or of the tags of new work; none for what is free.

    Args:
        feed: of the client.
        area: the resource.
        name: of the filter.
        capabilities: the names of all that there are.
    """
    if name == "status" and area in _QUERIES:
        return [Proposal(status) for status in _QUERIES[area].STATUSES]
    if name in ("tag", "tags") and area in _QUERIES:
        return feed.list_tags(f"/{area}")
    if name == "provider":
        return feed.list_providers()
    return capabilities if name == "capability" else None


def list_comparable(feed: ClientFeed, other_id: str) -> list[Proposal]:
    """List what may be compared: of the kind of the other one, where that is there."""
    path = COMPARED_PATHS.get(other_id.partition("_")[0])
    paths = ("/runs", "/workflows") if path is None else (path,)
    found = [one for each in paths for one in feed.list_records(each)]
    return [one for one in found if one.text != other_id]
