"""The engine's side of a batch at its vendor: submit, find again after a crash, poll and read."""

import asyncio
import itertools
import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Final, TypeVar

import httpx

from toolkit.contract.base import now
from toolkit.contract.connections import Connection
from toolkit.contract.errors import ErrorCode, ToolkitError
from toolkit.contract.money import ZERO_USD
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.candidate_search import find_backoff_s
from toolkit.engine.execution.store_patience import ask_store
from toolkit.engine.transport.answers import OutcomeUnknownError
from toolkit.engine.transport.driver import FlowHooks
from toolkit.engine.transport.send_check import SEND_CHECK
from toolkit.plugins import (
    BatchItem,
    BatchJob,
    BatchResult,
    BatchWire,
    Flow,
    ProviderError,
)
from toolkit.plugins.key_redaction import redact_message
from toolkit.store import Lease, LeaseLost, Row, StoreUnavailableError, UpdateRow

T = TypeVar("T")
# The time between two polls is a tenth of the age of the batch, within these bounds.
FIRST_POLL_S, LAST_POLL_S = 0.2, 60.0
# All documented windows end after a day; what is not there then, will not come.
MAX_AGE_S: Final = 26 * 3_600.0
CLOCK_SKEW = timedelta(minutes=5)  # between this machine and a vendor
_SERVER_ERROR = 500


@dataclass(slots=True)
class OpenBatch:
    """A batch without all of its results.

    Attributes:
        id: our id, and the key that the vendor gets.
        connection: the connection whose vendor has it.
        count: number of its requests.
        nano: what the requests without a result may cost, in billionths of a dollar.
        created_at: time at which it was committed, just before its submission.
        vendor_id: the vendor's id of it; None as long as it is unknown.
        spending: ids of the spending of keys and accounts that it counts against.
        incurred_usd: what the job that is settled now had cost before, in US dollars.
    """

    id: str
    connection: Connection
    model: str
    count: int
    nano: int
    created_at: datetime
    vendor_id: str | None
    spending: Sequence[str] = ()
    incurred_usd: Decimal = field(default=ZERO_USD)

    @property
    def age_s(self) -> float:
        """The seconds since it was committed."""
        return (now() - self.created_at).total_seconds()


class BatchLostError(Exception):
    """Raised when it is certain that a vendor never had a batch."""


class BatchClient:
    """A client of the batch APIs of vendors, for the map that a lease covers."""

    def __init__(self, core: EngineContext, lease: Lease, capability_id: str) -> None:
        self._core = core
        self._lease = lease
        self._capability_id = capability_id

    async def load(self, row: Row) -> OpenBatch:
        """Load a batch from its row.

        Raises:
            ProviderError: `CREDENTIALS_MISSING` if its connection is gone.
        """
        document = json.loads(row["doc"])
        stored = await self._core.store.get_row("connections", str(row["connection_id"]))
        if stored is None:
            raise ProviderError(
                ErrorCode.CREDENTIALS_MISSING, "The connection of the batch was deleted."
            )
        return OpenBatch(
            id=str(row["id"]),
            connection=Connection.model_validate_json(stored["doc"]),
            model=document["model"],
            count=document["count"],
            nano=int(row["nano"]),
            created_at=datetime.fromisoformat(str(row["created_at"])),
            vendor_id=row["vendor_id"],
            spending=document["spending"],
        )

    async def fetch_results(
        self, batch: OpenBatch, items: list[BatchItem] | None
    ) -> dict[str, BatchResult]:
        """Wait until a batch has ended, and return its results by the ids of their items.

        Args:
            items: the requests to submit, which are dropped from the list once they are; None if
                an earlier process may have submitted them.

        Raises:
            ProviderError: the failure of the whole batch.
            BatchLostError: it never reached the vendor.
        """
        if items is not None:
            await self._submit(batch, items)
            items.clear()  # the batch may take a day
        elif batch.vendor_id is None:
            await self._find(batch)
        results = await self._read(batch, await self._wait_for_end(batch, str(batch.vendor_id)))
        return {result.id: result for result in results}

    async def cancel(self, batch: OpenBatch) -> None:
        """Ask the vendor to end a batch; a failure changes nothing, as its cost is counted."""
        if batch.vendor_id is not None:
            with suppress(ProviderError):
                await self._drive(batch, self._find_wire(batch).cancel, batch.vendor_id)

    async def _submit(self, batch: OpenBatch, items: Sequence[BatchItem]) -> None:
        """Submit a batch; find it if nobody knows whether the vendor has it."""
        settings, wire = self._core.settings, self._find_wire(batch)
        for retry in itertools.count():
            try:
                vendor_id = await self._drive(batch, wire.submit, batch.id, items)
                await self._adopt(batch, vendor_id)
                return
            except ProviderError as error:
                if _may_have_arrived(error):
                    await self._find(batch)
                    return
                if not error.retryable or retry >= settings.retries:
                    raise
                delay_s = find_backoff_s(retry, error.retry_after, settings.retry_base_s)
            await asyncio.sleep(delay_s)

    async def _adopt(self, batch: OpenBatch, vendor_id: str) -> None:
        batch.vendor_id = vendor_id
        update = UpdateRow("map_batches", batch.id, {"vendor_id": vendor_id})
        await self._core.store.write([update], lease=self._lease, paid=True)

    async def _find(self, batch: OpenBatch) -> None:
        """Find at the vendor a batch that was submitted with an unknown outcome.

        It is found by our key. If the vendor does not show it, batches of the same time and size
        are read once they have ended, because the ids of their items contain the key.

        Raises:
            BatchLostError: it is certain that there is none.
        """
        wire, began = self._find_wire(batch), time.monotonic()
        others = {
            str(row["vendor_id"])
            for row in await self._core.store.find_rows(
                "map_batches", connection_id=batch.connection.id
            )
        }
        while True:
            # Before the look: what the vendor accepted until then is in its list.
            grace_is_over = time.monotonic() - began > self._core.settings.batch_grace_s
            jobs = await self._insist(batch, wire.find, batch.created_at - CLOCK_SKEW)
            named = next((job for job in jobs if job.key == batch.id), None)
            if named is not None:
                return await self._adopt(batch, named.id)
            similar = [job for job in jobs if job.id not in others and _may_be(job, batch)]
            for job in similar:
                if job.is_ended:
                    results = await self._read(batch, job)
                    if any(result.id.startswith(f"{batch.id}-") for result in results):
                        return await self._adopt(batch, job.id)
                    others.add(job.id)
            if grace_is_over and all(job.is_ended for job in similar):
                raise BatchLostError
            await asyncio.sleep(_find_pause_s(time.monotonic() - began))

    async def _wait_for_end(self, batch: OpenBatch, vendor_id: str) -> BatchJob:
        """Poll a batch until it has ended.

        Raises:
            ProviderError: the vendor refused the whole batch, or does not know it any more.
        """
        while True:
            job = await self._insist(batch, self._find_wire(batch).check, vendor_id)
            if job.failure is not None:
                raise job.failure
            if job.is_ended:
                return job
            await asyncio.sleep(_find_pause_s(batch.age_s))

    async def _read(self, batch: OpenBatch, job: BatchJob) -> Sequence[BatchResult]:
        return await self._insist(batch, self._find_wire(batch).read, job)

    async def _insist(
        self, batch: OpenBatch, make_flow: "Callable[..., Flow[T]]", argument: object
    ) -> T:
        """Drive a free flow, and repeat it after failures as long as the batch may have results.

        Raises:
            ProviderError: the vendor rejected the request, or the batch is too old.
        """
        began = time.monotonic()
        while True:
            try:
                return await self._drive(batch, make_flow, argument)
            except ProviderError as error:
                if error.code is ErrorCode.PROVIDER_REJECTED or batch.age_s > MAX_AGE_S:
                    raise
            await asyncio.sleep(_find_pause_s(time.monotonic() - began))

    async def _drive(
        self, batch: OpenBatch, make_flow: "Callable[..., Flow[T]]", *arguments: object
    ) -> T:
        """Drive a flow of a vendor's batch API, with the secret of the batch's connection."""
        core = self._core
        vendor = core.registry.vendors[batch.connection.provider]
        try:
            access = await core.resolve_access(vendor, batch.connection, batch.model)
        except (StoreUnavailableError, ProviderError, LeaseLost):
            raise
        except ToolkitError as error:
            raise ProviderError(error.code, error.message, retryable=False) from None
        try:
            return await core.driver.run(
                make_flow(*arguments, access),
                FlowHooks(on_request=self._permit_request),
                timeouts=core.get_timeouts(vendor.id, self._capability_id, "flex"),
                via=vendor.id,
                account_id=self._lease.account_id,
                is_large=True,
            )
        except ProviderError as error:
            error.message = redact_message(error.message, access.key_forms)
            raise

    async def _permit_request(self, request: httpx.Request) -> None:
        """Have the lease checked just before a request is sent: another process may have it."""
        request.extensions[SEND_CHECK] = partial(
            ask_store, self._core, self._core.store.leases.check, self._lease
        )

    def _find_wire(self, batch: OpenBatch) -> BatchWire:
        return find_wire(self._core, batch.connection.provider)


def find_wire(core: EngineContext, vendor_id: str) -> BatchWire:
    """Find the batch API of a vendor whose models have the ability `batches`."""
    wire = core.registry.vendors[vendor_id].batch
    if wire is None:
        raise TypeError(f"{vendor_id} has no batch API")
    return wire


def _may_have_arrived(error: ProviderError) -> bool:
    """Check whether a vendor may have created a batch although its answer says nothing of it."""
    is_unknown = isinstance(error, OutcomeUnknownError) or (error.status or 0) >= _SERVER_ERROR
    return is_unknown or error.code is ErrorCode.PROVIDER_BAD_RESPONSE


def _may_be(job: BatchJob, batch: OpenBatch) -> bool:
    """Check whether a batch that a vendor shows without a key may be ours."""
    is_later = job.created_at is None or job.created_at >= batch.created_at - CLOCK_SKEW
    return not job.key and is_later and job.count in (None, batch.count)


def _find_pause_s(age_s: float) -> float:
    return min(LAST_POLL_S, max(FIRST_POLL_S, age_s / 10))
