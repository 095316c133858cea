"""A vendor's batch API: many requests in one submission, answered within a day at a lower price."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx

from toolkit.plugins.flow import Flow


@dataclass(frozen=True, slots=True)
class BatchItem:
    """A request of a batch, which replaces a call.

    Attributes:
        id: our id of it: the key of the batch and a number.
        path: path of the URL of the call; all items of a batch have the same.
        body: JSON body of the call.
    """

    id: str
    path: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A batch as its vendor reports it.

    Attributes:
        id: the vendor's id.
        key: our key; "" if the vendor does not show it.
        created_at: time of its creation; None if the vendor does not show it.
        count: number of its requests; None if the vendor does not show it.
        is_ended: whether no request of it will be executed any more.
        results: the vendor's names of the places of its results.
        failure: the `ProviderError` of a vendor that carried out no request; None if it did.
    """

    id: str
    key: str = ""
    created_at: datetime | None = None
    count: int | None = None
    is_ended: bool = False
    results: tuple[str, ...] = ()
    failure: Exception | None = None


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of an item: the answer that the call would have had, or None if it expired."""

    id: str
    response: httpx.Response | None


@dataclass(frozen=True, slots=True)
class BatchWire:
    """The flows of a vendor's batch API, which the engine drives; the last argument is an `Access`.

    Attributes:
        submit: creates a batch with our key, and returns the vendor's id of it. Only its last
            request may have an effect that is billed.
        find: lists the batches that may have been created since a time.
        check: reads a batch by its id.
        read: reads the results of a batch that has ended.
        cancel: ends a batch.
        max_items: maximum number of items.
        max_bytes: maximum bytes of all items as JSON.
        source: the vendor's page that documents the limits.
    """

    submit: Callable[[str, Sequence[BatchItem], Any], Flow[str]]
    find: Callable[[datetime, Any], Flow[Sequence[BatchJob]]]
    check: Callable[[str, Any], Flow[BatchJob]]
    read: Callable[[BatchJob, Any], Flow[Sequence[BatchResult]]]
    cancel: Callable[[str, Any], Flow[None]]
    max_items: int
    max_bytes: int
    source: str
