"""Batches of the `anthropic` wire, which shows their times and counts but no data of the caller."""

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from toolkit.sandbox.batches import EXPIRY_S, Batch, BatchedCall, WireBatches, format_lines
from toolkit.sandbox.json_http import JsonObject, RequestBody, build_checked_routes, read_body
from toolkit.sandbox.state import SandboxState
from toolkit.sandbox.wires.anthropic import AnthropicRefusalError, check_headers, refuse_body

PATH, MESSAGES_PATH = "/v1/messages/batches", "/v1/messages"
MAX_REQUESTS, MAX_BYTES = 100_000, 256_000_000
UNANSWERED = {"expired": "expired", "cancelled": "canceled"}


class BatchRequest(RequestBody):
    """A request of a batch, whose parameters are checked when it is answered."""

    custom_id: str = Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")
    params: JsonObject


class AnthropicBatchBody(RequestBody):
    """The body of a request for a batch."""

    requests: list[BatchRequest] = Field(min_length=1, max_length=MAX_REQUESTS)


def build_routes(state: SandboxState) -> list[BaseRoute]:
    """Build the routes of batches."""
    batches = WireBatches(state, "anthropic", _describe_batch, AnthropicRefusalError)

    async def create_batch(request: Request) -> Response:
        if len(await request.body()) > MAX_BYTES:
            raise AnthropicRefusalError(413, f"The batch is larger than {MAX_BYTES} bytes.")
        body = await read_body(request, AnthropicBatchBody, refuse_body)
        items: dict[str, BatchedCall] = {}
        for place, each in enumerate(body.requests):
            if each.custom_id in items:
                message = f"requests.{place}.custom_id: {each.custom_id!r} is a duplicate"
                raise AnthropicRefusalError(400, message)
            items[each.custom_id] = BatchedCall(each.custom_id, MESSAGES_PATH, each.params)
        id = f"msgbatch_{batches.create_id()[:24]}"
        batch = batches.create(request, id, list(items.values()), {})
        return JSONResponse(_describe_batch(request, batch))

    async def list_batches(request: Request) -> Response:
        newest = await batches.list_newest(request)
        is_backward = "before_id" in request.query_params
        names = ("before_id" if is_backward else "after_id", "limit")
        order = newest[::-1] if is_backward else newest
        page, has_more = batches.take_page(request, order, names, range(20, 1_000))
        if is_backward:
            page.reverse()
        first, last = (page[0].id, page[-1].id) if page else (None, None)
        data = [_describe_batch(request, batch) for batch in page]
        listed = {"data": data, "has_more": has_more, "first_id": first, "last_id": last}
        return JSONResponse(listed)

    async def find_ended(request: Request) -> Batch:
        batch = await batches.find(request)
        if not batch.has_ended:
            raise AnthropicRefusalError(400, f"The batch {batch.id} has not ended yet.")
        return batch

    async def get_results(request: Request) -> Response:
        batch = await find_ended(request)
        rows = [
            {"custom_id": item.custom_id, "result": _describe_result(batch, item)}
            for item in reversed(batch.items)  # the vendor's may be in any order, too
        ]
        return Response(format_lines(rows), media_type="application/x-jsonl")

    async def delete_batch(request: Request) -> Response:
        batch = await find_ended(request)
        del batches.batches[batch.id]
        return JSONResponse({"id": batch.id, "type": "message_batch_deleted"})

    return build_checked_routes(
        check_headers,
        (
            ("POST", PATH, create_batch),
            ("GET", PATH, list_batches),
            ("GET", PATH + "/{id}", batches.get),
            ("DELETE", PATH + "/{id}", delete_batch),
            ("POST", PATH + "/{id}/cancel", batches.cancel),
            ("GET", PATH + "/{id}/results", get_results),
        ),
    )


def _describe_result(batch: Batch, item: BatchedCall) -> JsonObject:
    if not item.status:
        return {"type": UNANSWERED[batch.state]}
    if item.status == 200:
        return {"type": "succeeded", "message": item.answer}
    return {"type": "errored", "error": item.answer}


def _describe_batch(request: Request, batch: Batch) -> JsonObject:
    has_ended, cancelled_s = batch.has_ended, batch.cancelled_after_s
    # The counts of answers stay 0 until the batch has ended.
    counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
    if has_ended:
        counts["succeeded"] = batch.count(succeeded=True)
        counts["errored"] = batch.count(succeeded=False)
        if batch.state in UNANSWERED:
            counts[UNANSWERED[batch.state]] = len(batch.items) - sum(counts.values())
    else:
        counts["processing"] = len(batch.items)
    status = "in_progress" if cancelled_s is None else "canceling"
    path = f"{batch.prefix}{PATH}/{batch.id}/results"
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": "ended" if has_ended else status,
        "request_counts": counts,
        "created_at": batch.spell_time(),
        "expires_at": batch.spell_time(EXPIRY_S),
        "ended_at": batch.spell_time(batch.ends_after_s) if has_ended else None,
        "cancel_initiated_at": None if cancelled_s is None else batch.spell_time(cancelled_s),
        "archived_at": None,
        "results_url": str(request.url.replace(path=path, query="")) if has_ended else None,
    }
