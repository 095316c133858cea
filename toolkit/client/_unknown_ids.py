"""Suggestions for ids that a service does not know, from ids that the client has seen."""

from collections.abc import Collection

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.suggestions import ask_meant, truncate_text

# The resource of each kind of id, by its prefix (`toolkit.contract.ids`).
RESOURCES = {
    "run": "runs",
    "job": "jobs",
    "map": "maps",
    "wfl": "workflows",
    "tsk": "tasks",
    "pln": "plans",
    "art": "artifacts",
    "prv": "connections",
    "ep": "endpoints",
    "cmp": "compute",
    "sto": "storage",
    "tpl": "templates",
    "agt": "agents",
    "key": "api_keys",
}
WORK_RESOURCES = ("runs", "jobs", "maps", "workflows", "tasks")


def explain_unknown_id(
    error: RequestError, resource: str, id: object, seen_ids: Collection[str]
) -> RequestError:
    """Add to the error for an unknown id the likely id, and where to list the known ids.

    Args:
        error: error of the service; any other than `NOT_FOUND` is returned unchanged.
        resource: resource of the request, by its name on the client.
        seen_ids: ids of this resource that the client has seen.
    """
    if error.code is not ErrorCode.NOT_FOUND:
        return error
    other_resource = RESOURCES.get(str(id).partition("_")[0])
    if resource == "capabilities":
        hint = ""  # the service lists them
    elif other_resource not in (None, resource):
        hint = f"That is the id of one of `client.{other_resource}`."
    else:
        hint = ask_meant(id, reversed(list(seen_ids))) or f"`client.{resource}.list()` lists them."
    error.message = truncate_text(f"{error.message} {hint}".rstrip(), 1000)
    return error


def find_work_resource(id: str) -> str | None:
    """Return the resource that an id of work belongs to, such as `runs`; None for other ids."""
    resource = RESOURCES.get(id.partition("_")[0])
    return resource if resource in WORK_RESOURCES else None


def find_common_resource(first: str, second: str) -> str:
    """Find the resource that two ids of work share, such as `runs`.

    Raises:
        RequestError: `INVALID_REQUEST` unless it is the same, and can be compared.
    """
    resources = [find_work_resource(id) for id in (first, second)]
    if resources[0] is None or resources[0] != resources[1]:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"`{first}` and `{second}` cannot be compared:"
            " give two runs, two workflows or two tasks.",
        )
    return resources[0]
