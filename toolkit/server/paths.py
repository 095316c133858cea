"""The paths that are served: found by one look-up, or by their number of parts."""

from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeVar

E = TypeVar("E")


class PathMatch(NamedTuple, Generic[E]):
    """The match of a path.

    Attributes:
        template: path in the table, such as `/v1/runs/{id}`.
        endpoint: endpoint that answers it.
        id: text in the place of `{id}`; empty without an id.
    """

    template: str
    endpoint: E
    id: str = ""


class PathTable(Generic[E]):
    """The endpoint of each path that is served.

    >>> PathTable({"/v1/runs": 1, "/v1/runs/{id}": 2}).find("/v1/runs/run_01")
    PathMatch(template='/v1/runs/{id}', endpoint=2, id='run_01')
    """

    def __init__(self, endpoints: Mapping[str, E]) -> None:
        self.paths = tuple(endpoints)
        self._literals: dict[str, PathMatch[E]] = {}
        self._templates: dict[int, list[tuple[list[str], PathMatch[E]]]] = {}
        for path, endpoint in endpoints.items():
            match, parts = PathMatch(path, endpoint), path.split("/")
            if "{id}" in parts:
                self._templates.setdefault(len(parts), []).append((parts, match))
            else:
                self._literals[path] = match

    def find(self, path: str) -> PathMatch[E] | None:
        """Find the match of a path. Returns None if it is not served."""
        if path in self._literals:
            return self._literals[path]
        segments = path.split("/")
        for parts, match in self._templates.get(len(segments), ()):
            at = parts.index("{id}")
            if (
                segments[at]
                and parts[:at] == segments[:at]
                and parts[at + 1 :] == segments[at + 1 :]
            ):
                return PathMatch(match.template, match.endpoint, segments[at])
        return None
