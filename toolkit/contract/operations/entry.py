"""Operations without their models: cheap to read, for a client or a shell."""

from typing import NamedTuple


class OperationEntry(NamedTuple):
    """An operation in the index.

    Attributes:
        resource: the resource that it is about, as the client names it.
        verb: what is done.
        method: the method.
        path: the path, with `{id}` for the id of one.
        replays: whether its answer is stored under the request's `Idempotency-Key`.
    """

    resource: str
    verb: str
    method: str
    path: str
    replays: bool


def matches_path(template: str, path: str) -> bool:
    """Tell whether a path is of the form of a template.

    >>> matches_path("/v1/runs/{id}/events", "/v1/runs/run_1/events")
    True
    >>> matches_path("/v1/runs/{id}", "/v1/runs/")
    False
    """
    asked, parts = path.split("/"), template.split("/")
    return len(asked) == len(parts) and all(
        part == name or (name and part == "{id}") for part, name in zip(parts, asked, strict=True)
    )
