"""The batches of all wires: their items, which are answered as time passes, and their files."""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from toolkit.sandbox.json_http import JsonObject, RefusalError
from toolkit.sandbox.middleware import BufferedAnswer
from toolkit.sandbox.state import SandboxState, get_call, get_effects

BATCH_S = 1.0  # duration of a batch, unless a fault sets another
EXPIRY_S = 24 * 3600.0
VALIDATION_SHARE = 0.1  # of the duration of a batch
CANCELLATION_S = 0.1
MAX_LOOK_S = 5.0  # longest time for which a poll answers items
BatchState: TypeAlias = Literal[
    "validating", "failed", "in_progress", "completed", "expired", "cancelling", "cancelled"
]


@dataclass(slots=True)
class BatchedCall:
    """A request of a batch.

    Attributes:
        custom_id: the caller's id of the item, or its number if it has none.
        path: path of the call that makes such a request by itself, below the wire's own address.
        source: name of the file that the item comes from, if the wire needs it.
        status: HTTP status of the answer; 0 while there is none.
    """

    custom_id: str
    path: str
    body: JsonObject
    source: str = ""
    status: int = 0
    request_id: str = ""
    answer: JsonObject = field(default_factory=dict)


@dataclass(slots=True)
class StoredFile:
    """A file that was uploaded, or that a batch has written."""

    id: str
    filename: str
    purpose: str
    data: bytes
    created_at: int


@dataclass
class Batch:
    """A batch, whose items are answered evenly over its duration, the last item first.

    Attributes:
        prefix: path at which the wire is mounted that answers the items.
        details: data of the batch that its wire returns.
        created_at: time of the creation, in seconds since the epoch of Unix.
        duration_s, expiry_s: duration in seconds, and seconds after which the batch expires.
        errors: faults of the whole input; a batch with any of them fails.
        cancelled_after_s: seconds between the creation and the cancellation, or None.
        outputs: ids of the files that the wire wrote after the end of the batch.
    """

    id: str
    prefix: str
    items: Sequence[BatchedCall]
    details: JsonObject
    headers: Sequence[tuple[bytes, bytes]]
    clock: Callable[[], float]
    duration_s: float
    expiry_s: float
    errors: Sequence[JsonObject] = ()
    cancelled_after_s: float | None = None
    outputs: Sequence[str | None] = ()

    def __post_init__(self) -> None:
        self.created_at = time.time()
        self._started_s = self.clock()
        self._waiting = list(self.items)
        self._answered_count = 0

    @property
    def ends_after_s(self) -> float:
        """The seconds between the creation and the end."""
        validated_s = VALIDATION_SHARE * self.duration_s
        if self.errors:
            return validated_s
        end_s = min(self.duration_s, self.expiry_s)
        return end_s if self.cancelled_after_s is None else min(end_s, self.cancelled_after_s)

    @property
    def state(self) -> BatchState:
        """The state of the batch now."""
        elapsed_s = self._get_elapsed_s()
        cancelled_s = self.cancelled_after_s
        if cancelled_s is None and elapsed_s < VALIDATION_SHARE * self.duration_s:
            return "validating"
        if self.errors:
            return "failed"
        is_working = elapsed_s < self.ends_after_s or self._answered_count < self._count_due()
        if cancelled_s is not None:
            is_cancelling = is_working or elapsed_s < cancelled_s + CANCELLATION_S
            return "cancelling" if is_cancelling else "cancelled"
        if is_working:
            return "in_progress"
        return "completed" if self._answered_count == len(self.items) else "expired"

    @property
    def has_ended(self) -> bool:
        """True if no item will be answered any more."""
        return self.state in ("completed", "failed", "expired", "cancelled")

    def cancel(self) -> None:
        """Leave the items unanswered whose time has not come; for a batch that has not ended."""
        if self.cancelled_after_s is None:
            self.cancelled_after_s = self._get_elapsed_s()

    def count(self, *, succeeded: bool) -> int:
        """Count the answers that are successes, or those that are not."""
        return sum((item.status == 200) is succeeded for item in self.items if item.status)

    def spell_time(self, after_s: float = 0.0) -> str:
        """Spell a time, given in seconds after the creation."""
        time = datetime.fromtimestamp(self.created_at + after_s, UTC)
        return time.isoformat(timespec="microseconds").replace("+00:00", "Z")

    async def answer_due_items(self, request: Request) -> None:
        """Answer the items whose time has come, by the app of any request of a client."""
        stop_s = time.monotonic() + MAX_LOOK_S
        while len(self.items) - len(self._waiting) < self._count_due():
            if time.monotonic() >= stop_s:
                return
            item = self._waiting.pop()
            try:
                await asyncio.sleep(0)  # so that other requests go on
                await self._answer_item(item, request)
            except BaseException:  # the client has gone: the next look answers the item
                self._waiting.append(item)
                raise
            self._answered_count += 1

    def _get_elapsed_s(self) -> float:
        return self.clock() - self._started_s

    def _count_due(self) -> int:
        """Count the items that are to be answered by now."""
        elapsed_s = min(self._get_elapsed_s(), self.ends_after_s)
        if self.errors or elapsed_s < VALIDATION_SHARE * self.duration_s:
            return 0
        share = elapsed_s / self.duration_s if self.duration_s else 1.0
        return int(len(self.items) * share)

    async def _answer_item(self, item: BatchedCall, request: Request) -> None:
        body = json.dumps(item.body, ensure_ascii=False).encode()
        path = self.prefix + item.path
        scope = {
            **{name: request.scope[name] for name in ("type", "asgi", "http_version", "scheme")},
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": request.scope["query_string"],
            "headers": [*self.headers, (b"content-type", b"application/json")],
            "server": request.scope.get("server"),
            "sandbox_item": (self.id, item.custom_id),
        }

        async def receive() -> JsonObject:
            return {"type": "http.request", "body": body, "more_body": False}

        reply = BufferedAnswer()
        await request.scope["app"](scope, receive, reply)
        headers = dict(reply.headers)
        item.request_id = headers.get(b"x-request-id", headers.get(b"request-id", b"")).decode()
        item.answer = json.loads(reply.body)
        item.status = reply.status


@dataclass
class BatchRecords:
    """The batches and files of all wires, by wire and id, in the order of their creation."""

    batches: dict[str, dict[str, Batch]] = field(default_factory=dict)
    files: dict[str, dict[str, StoredFile]] = field(default_factory=dict)


class WireBatches:
    """The batches and files of a wire, and the handlers that all wires have.

    Args:
        state: the state of the app.
        wire: the wire that batches are created on.
        describe: function that describes a batch in the vendor's format.
        refuse: function that makes a vendor's refusal from a status and a message.
        item_wire: the wire that answers items, if it is another.
    """

    def __init__(
        self,
        state: SandboxState,
        wire: str,
        describe: Callable[[Request, Batch], JsonObject],
        refuse: Callable[[int, str], RefusalError],
        item_wire: str = "",
    ) -> None:
        records = state.get_records(BatchRecords)
        self.batches = records.batches.setdefault(wire, {})
        self.files = records.files.setdefault(wire, {})
        self._state, self._describe, self._refuse = state, describe, refuse
        self._prefix = state.vendor_paths[item_wire or wire]

    def create_id(self) -> str:
        """Create an id of 64 hexadecimal digits, which differs each time."""
        return self._state.compute_fresh_digest("batch")

    def create(
        self,
        request: Request,
        id: str,
        items: Sequence[BatchedCall],
        details: JsonObject,
        errors: Sequence[JsonObject] = (),
        headers: Sequence[tuple[bytes, bytes]] | None = None,
    ) -> Batch:
        """Create the batch that a request asks for, and note it in the log of calls.

        Args:
            headers: headers of the calls that answer items; None for those of the request.
        """
        effects, own = get_effects(request), (b"content-length", b"content-type")
        if headers is None:
            headers = [pair for pair in request.headers.raw if pair[0] not in own]
        duration_s = BATCH_S if effects.batch_s is None else effects.batch_s
        expiry_s = EXPIRY_S if effects.batch_expiry_s is None else effects.batch_expiry_s
        times = (self._state.clock, duration_s, expiry_s)
        batch = Batch(id, self._prefix, items, details, headers, *times, errors)
        get_call(request).batch_id = id
        self.batches[id] = batch
        return batch

    def add_file(self, id: str, filename: str, purpose: str, data: bytes) -> StoredFile:
        """Store a file."""
        self.files[id] = StoredFile(id, filename, purpose, data, int(time.time()))
        return self.files[id]

    async def find(self, request: Request) -> Batch:
        """Return the batch of a path, with its due items answered.

        Raises:
            RefusalError: there is no such batch.
        """
        id = str(request.path_params["id"]).rpartition("/")[2]
        if id not in self.batches:
            raise self._refuse(404, f"No batch found with id '{id}'.")
        await self.batches[id].answer_due_items(request)
        return self.batches[id]

    async def get(self, request: Request) -> Response:
        """Handle a request for a batch."""
        return JSONResponse(self._describe(request, await self.find(request)))

    async def cancel(self, request: Request) -> Response:
        """Handle a request to cancel a batch; a second request changes nothing."""
        batch = await self.find(request)
        if batch.has_ended and batch.cancelled_after_s is None:
            raise self._refuse(409, f"Cannot cancel a batch with status '{batch.state}'.")
        batch.cancel()
        return JSONResponse(self._describe(request, batch))

    async def list_newest(self, request: Request) -> list[Batch]:
        """List the batches, the newest first, with their due items answered."""
        for batch in list(self.batches.values()):
            await batch.answer_due_items(request)
        return list(reversed(self.batches.values()))

    def take_page(
        self, request: Request, batches: Sequence[Batch], names: tuple[str, str], limits: range
    ) -> tuple[list[Batch], bool]:
        """Take the page of batches that a request asks for, and return whether more follow.

        Args:
            names: parameters of the id before the page, and of the size of the page.
            limits: sizes of pages, from the usual size to the largest.

        Raises:
            RefusalError: the size is not valid.
        """
        after, size = (request.query_params.get(name) for name in names)
        size = size or str(limits.start)
        if not size.isdecimal() or not 1 <= int(size) <= limits.stop:
            raise self._refuse(400, f"{names[1]} must be from 1 to {limits.stop}.")
        ids = [batch.id for batch in batches]
        start = ids.index(after) + 1 if after in ids else 0
        end = start + int(size)
        return list(batches[start:end]), end < len(batches)


def format_lines(rows: Sequence[JsonObject]) -> bytes:
    """Format JSON objects as lines."""
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)
