"""The calls of a client's resources that both clients share.

Each makes a request, and returns what its client's `_create` or `_call` returns: a handle, or for
the async client what is awaited for one. So it is written once, and not generated.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from toolkit.client._client_state import ClientState
from toolkit.client._wire.messages import drop_none, make_annotation
from toolkit.contract.account import KeyCreated
from toolkit.contract.choices import OptimizeFor, Scope
from toolkit.contract.short_tracebacks import UnknownAttributeError

H = TypeVar("H")  # a handle, or for the async client what is awaited for one
K = TypeVar("K")  # a new key, or for the async client what is awaited for one
MAX_KNOWN_IDS = 500  # ids for completion, of each resource


class HandleCalls(ABC, Generic[H]):
    """The calls of one resource."""

    @abstractmethod
    def _call(self, method: str, what: str = "", **options: Any) -> H:
        """Send a request about it."""


class ResourceCalls(ABC, Generic[H]):
    """The calls of a `/v1` resource."""

    handle: type[Any]
    _http: ClientState
    _known_ids: dict[str, None]

    if not TYPE_CHECKING:  # a name that there is not is found by mypy, too

        def __getattr__(self, name: str) -> object:
            if name.startswith("_"):
                raise AttributeError(name)
            raise UnknownAttributeError(self, name)

    @abstractmethod
    def _create(self, body: Mapping[str, object], **options: Any) -> H:
        """Ask for a new one."""

    @abstractmethod
    def _call(self, method: str, id: str, what: str = "", **options: Any) -> H:
        """Send a request about the one of an id."""

    def _remember_id(self, id: str) -> None:
        self._known_ids[id] = None
        if len(self._known_ids) > MAX_KNOWN_IDS:
            del self._known_ids[next(iter(self._known_ids))]

    def _ipython_key_completions_(self) -> list[str]:
        """Return the ids seen so far, newest last: completing sends no request."""
        return list(self._known_ids)

    @property
    def _name(self) -> str:
        """The word for many of them."""
        name: str = self.handle.resource.rpartition("/")[2]
        return name


class DeletableCalls(ResourceCalls[H]):
    """The calls of a resource whose records can be deleted."""

    def delete(self, id: str) -> H:
        """Delete one; what a vendor has of it is deleted there, too, and no longer billed.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` while it is in use, or the vendor did not do it.
        """
        return self._call("DELETE", id)


class WorkCalls(ResourceCalls[H]):
    """The calls of a resource of work."""

    def cancel(self, id: str) -> H:
        """Cancel one; one that has ended stays as it is."""
        return self._call("POST", id, "/cancel")


class AnnotatedCalls(WorkCalls[H]):
    """The calls of a resource of work that carries tags and a note."""

    def annotate(self, id: str, *, tags: Sequence[str] | None = None, note: str | None = None) -> H:
        """Give one other tags, or another note, whatever its state; what is left out stays.

        Args:
            id: which.
            tags: in place of those that it has; none at all for `[]`.
            note: in place of the one that it has; none for `""`.

        Raises:
            RequestError: `NOT_FOUND`; `INVALID_REQUEST` for a tag with a comma, or too much.
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
            name: in lower case, such as `card-maker`.
            objective: what is wanted; each `{word}` in it is a parameter of its runs.
            version: `1` by default; a version never changes.
            capabilities: the only ones it may use; all, by default.
            max_cost_usd: what each run may cost.
            optimize_for: `cost`, `latency`, `quality` or `balanced`.
            endpoint_id: a serverless endpoint, for images.
            compute_id: a GPU pod to use instead.

        Raises:
            RequestError: `CONFLICT` for a name and version that are there, `NOT_FOUND`.
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
        """Create another key; it is shown this once.

        Args:
            name: what it is for.
            scopes: `read`, `write`, `admin`; the first two by default. `work` alone is for code
                that asks for work and reads its results, and for nothing else.
            max_cost_usd_per_day: what all work asked for with it may cost in a day, by UTC.
            max_cost_usd: maximum total cost of all work asked for with it, in US dollars.
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
        """Replace a key by a new one, which is shown this once.

        Args:
            id: of the old one.
            overlap_s: how long that is still good, in seconds; a day by default, 0 ends it at once.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` for one that has ended, or was rotated before.
        """
        return self._make_key(f"/{id}/rotate", drop_none(overlap_s=overlap_s))

    def _make_key(self, what: str, body: Mapping[str, object]) -> K:
        path = f"/{self.handle.resource}{what}"
        made: K = self._http.request_record(KeyCreated, "POST", path, json=body)
        return made
