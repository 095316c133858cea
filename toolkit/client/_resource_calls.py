"""Calls of a client's resources, which both clients share.

Each call builds a request and returns the result of its client's `_create` or `_call`: a handle, or
a coroutine in the async client. The call itself awaits nothing, so it need not be generated.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from toolkit.client._client_state import ClientState
from toolkit.client._wire.messages import drop_none, make_annotation
from toolkit.contract.account import KeyCreated
from toolkit.contract.choices import OptimizeFor, Scope
from toolkit.contract.short_tracebacks import HasKnownNames

H = TypeVar("H")  # a handle; in the async client, a coroutine that returns one
K = TypeVar("K")  # a new key; in the async client, a coroutine that returns one
MAX_KNOWN_IDS = 500  # ids that completion offers, for each resource


class HandleCalls(ABC, Generic[H]):
    """The calls of one resource."""

    @abstractmethod
    def _call(self, method: str, what: str = "", **options: Any) -> H:
        """Send a request about the resource."""


class ResourceCalls(HasKnownNames, ABC, Generic[H]):
    """The calls of a `/v1` resource."""

    handle: type[Any]
    _http: ClientState
    _known_ids: dict[str, None]

    @abstractmethod
    def _create(self, body: Mapping[str, object], **options: Any) -> H:
        """Create a resource."""

    @abstractmethod
    def _call(self, method: str, id: str, what: str = "", **options: Any) -> H:
        """Send a request about the resource of an id."""

    def _remember_id(self, id: str) -> None:
        self._known_ids[id] = None
        if len(self._known_ids) > MAX_KNOWN_IDS:
            del self._known_ids[next(iter(self._known_ids))]

    def _ipython_key_completions_(self) -> list[str]:
        """Return the known ids, newest last; completion sends no request."""
        return list(self._known_ids)

    @property
    def _name(self) -> str:
        """The name of the resource, in the plural."""
        name: str = self.handle.resource.rpartition("/")[2]
        return name


class DeletableCalls(ResourceCalls[H]):
    """The calls of a resource whose records can be deleted."""

    def delete(self, id: str) -> H:
        """Delete a record; a vendor's resource behind it is deleted as well and no longer billed.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` if it is in use, or if the vendor failed.
        """
        return self._call("DELETE", id)


class WorkCalls(ResourceCalls[H]):
    """The calls of a resource of work."""

    def cancel(self, id: str) -> H:
        """Cancel work; work that has ended does not change."""
        return self._call("POST", id, "/cancel")


class AnnotatedCalls(WorkCalls[H]):
    """The calls of a resource of work that carries tags and a note."""

    def annotate(self, id: str, *, tags: Sequence[str] | None = None, note: str | None = None) -> H:
        """Replace the tags or the note of work in any state; an omitted value does not change.

        Args:
            id: id of the work.
            tags: new tags; `[]` removes all tags.
            note: new note; `""` removes the note.

        Raises:
            RequestError: `NOT_FOUND`; `INVALID_REQUEST` for a tag with a comma, or for a value over
                its limit.
        """
        return self._call("POST", id, "/annotate", json=make_annotation(tags, note))


class AgentCalls(DeletableCalls[H]):
    """The calls of `client.agents`."""

    def create(
        self,
        name: str,
        objective: str,
        *,
        version: str | None = None,
        capabilities: Sequence[str] | None = None,
        max_cost_usd: float | None = None,
        optimize_for: OptimizeFor | None = None,
        endpoint_id: str | None = None,
        compute_id: str | None = None,
    ) -> H:
        """Register a version of an agent; run it by its handle, or by its name in `runs.create`.

        Args:
            name: name in lower case, such as `card-maker`.
            objective: the objective; each `{word}` in it is a parameter of the runs.
            version: the version, which never changes. Default: `1`.
            capabilities: capabilities that the agent may use. Default: all.
            max_cost_usd: budget of each run.
            optimize_for: `cost`, `latency`, `quality` or `balanced`.
            endpoint_id: serverless endpoint for images.
            compute_id: GPU pod to use in place of an endpoint.

        Raises:
            RequestError: `CONFLICT` if the name and version exist, `NOT_FOUND`.
        """
        constraints = drop_none(
            max_cost_usd=max_cost_usd,
            optimize_for=optimize_for,
            endpoint_id=endpoint_id,
            compute_id=compute_id,
        )
        body = drop_none(
            name=name,
            version=version,
            objective=objective,
            constraints=constraints,
            capabilities=None if capabilities is None else list(capabilities),
        )
        return self._create(body)


class ApiKeyHandleCalls(ABC, Generic[K]):
    """The calls of a key."""

    _http: Any  # a `ClientState`

    @property
    @abstractmethod
    def path(self) -> str:
        """The path of the key, below `/v1`."""

    def rotate(self, *, overlap_s: int | None = None) -> K:
        """Replace the key by a new key, which is shown only once.

        Args:
            overlap_s: seconds that this key stays valid. Default: a day; 0 ends it at once.

        Raises:
            RequestError: `CONFLICT` if the key has ended, or was rotated before.
        """
        path, body = f"{self.path}/rotate", drop_none(overlap_s=overlap_s)
        key: K = self._http.request_record(KeyCreated, "POST", path, json=body)
        return key


class ApiKeyCalls(DeletableCalls[H], Generic[H, K]):
    """The calls of `client.api_keys`."""

    def create(
        self,
        *,
        name: str | None = None,
        scopes: Sequence[Scope] | None = None,
        max_cost_usd_per_day: float | None = None,
        max_cost_usd: float | None = None,
        expires_in_s: int | None = None,
    ) -> K:
        """Create a key, which is shown only once.

        Args:
            name: purpose of the key.
            scopes: `read`, `write` and `admin`. Default: the first two. `work` alone is for code
                that only starts work and reads its results.
            max_cost_usd_per_day: budget of all work of this key for each day in UTC.
            max_cost_usd: budget of all work of this key, in US dollars.
            expires_in_s: lifetime of the key, in seconds. None lets it live until it is revoked.
        """
        body = drop_none(
            name=name,
            scopes=None if scopes is None else list(scopes),
            max_cost_usd_per_day=max_cost_usd_per_day,
            max_cost_usd=max_cost_usd,
            expires_in_s=expires_in_s,
        )
        return self._make_key("", body)

    def rotate(self, id: str, *, overlap_s: int | None = None) -> K:
        """Replace a key by a new key, which is shown only once.

        Args:
            id: id of the old key.
            overlap_s: seconds that the old key stays valid. Default: a day; 0 ends it at once.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` if the key has ended, or was rotated before.
        """
        return self._make_key(f"/{id}/rotate", drop_none(overlap_s=overlap_s))

    def _make_key(self, what: str, body: Mapping[str, object]) -> K:
        path = f"/{self.handle.resource}{what}"
        key: K = self._http.request_record(KeyCreated, "POST", path, json=body)
        return key
