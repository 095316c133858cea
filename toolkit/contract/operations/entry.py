"""Operations without their models: cheap to read, for a client or a shell."""

from typing import NamedTuple


class OperationEntry(NamedTuple):
    """An operation in the index, without its models and errors.

    Attributes:
        resource: resource of the operation, by its name in the client.
        verb: action of the operation.
        method: HTTP method.
        path: path, with `{id}` as the id of a record.
        replays: whether its answer is stored under the request's `Idempotency-Key`.
    """

    resource: str
    verb: str
    method: str
    path: str
    replays: bool


def matches_path(template: str, path: str) -> bool:
    """Check whether a path has the form of a template, with any id in the place of `{id}`.

    >>> matches_path("/v1/runs/{id}/events", "/v1/runs/run_1/events")
    True
    >>> matches_path("/v1/runs/{id}", "/v1/runs/")
    False
    """
    segments, parts = path.split("/"), template.split("/")
    return len(segments) == len(parts) and all(
        part == name or (name and part == "{id}")
        for part, name in zip(parts, segments, strict=True)
    )
