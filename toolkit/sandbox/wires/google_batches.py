"""Batches of the `google` wire, with their requests and responses inline."""

from typing import Any, Literal

from pydantic import Field
from pydantic.alias_generators import to_camel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from toolkit.sandbox.batches import Batch, BatchedCall, WireBatches
from toolkit.sandbox.json_http import (
    JsonObject,
    RefusalError,
    RequestBody,
    build_checked_routes,
    read_body,
)
from toolkit.sandbox.state import SandboxState
from toolkit.sandbox.wires.google import check_request, refuse, refuse_body, resolve_model

MAX_BYTES = 20_000_000  # of requests that are inline
_STATES = {
    "validating": "PENDING",
    "in_progress": "RUNNING",
    "cancelling": "RUNNING",
    "completed": "SUCCEEDED",
}
_TYPE = "type.googleapis.com/google.ai.generativelanguage.v1main."
# The codes of errors in `google.rpc.Code`, by the HTTP status of a single call.
_RPC_CODES = {400: 3, 401: 16, 403: 7, 404: 5, 429: 8, 503: 14, 504: 4}


class InlinedRequest(RequestBody, extra="ignore"):
    """A request of a batch, which is checked when it is answered."""

    request: JsonObject
    metadata: dict[str, Any] | None = None


class InlinedRequests(RequestBody):
    """The requests of a batch."""

    requests: list[InlinedRequest] = Field(min_length=1)


class BatchConfig(RequestBody, alias_generator=to_camel):
    """A batch."""

    input_config: dict[Literal["requests"], InlinedRequests] = Field(min_length=1)
    display_name: str | None = None
    model: str | None = None


class GoogleBatchBody(RequestBody):
    """The body of a request for a batch."""

    batch: BatchConfig


def build_routes(state: SandboxState) -> list[BaseRoute]:
    """Build the routes of batches."""
    batches = WireBatches(state, "google", _describe_batch, _refuse)

    async def create_batch(request: Request) -> Response:
        if len(await request.body()) > MAX_BYTES:
            raise refuse(400, f"Request payload size exceeds the limit: {MAX_BYTES} bytes.")
        body = (await read_body(request, GoogleBatchBody, refuse_body)).batch
        model = resolve_model(str(request.path_params["model"]), "v1beta")
        requests = body.input_config["requests"].requests
        items = []
        for number, each in enumerate(requests):
            if each.request.pop("model", f"models/{model}") != f"models/{model}":
                raise refuse(400, f"The model of requests[{number}] is not that of the batch.")
            key = str((each.metadata or {}).get("key", number))
            path = f"/v1beta/models/{model}:generateContent"
            items.append(BatchedCall(key, path, each.request))
        shown = {"model": f"models/{model}"}
        if body.display_name is not None:
            shown["displayName"] = body.display_name
        details = {"shown": shown, "metadata": [each.metadata for each in requests]}
        batch = batches.create(request, batches.create_id()[:32], items, details)
        return JSONResponse(_describe_batch(request, batch))

    async def list_batches(request: Request) -> Response:
        newest, names = await batches.list_newest(request), ("pageToken", "pageSize")
        page, has_more = batches.take_page(request, newest, names, range(50, 1_000))
        operations = [_describe_batch(request, batch) for batch in page]
        following = {"nextPageToken": page[-1].id} if has_more else {}
        return JSONResponse({"operations": operations, **following})

    async def cancel_batch(request: Request) -> Response:
        await batches.cancel(request)
        return JSONResponse({})

    return build_checked_routes(
        check_request,
        (
            ("POST", "/{version:str}/models/{model}:batchGenerateContent", create_batch),
            ("GET", "/{version:str}/batches", list_batches),
            ("GET", "/{version:str}/batches/{id}", batches.get),
            ("POST", "/{version:str}/batches/{id}:cancel", cancel_batch),
        ),
    )


def _refuse(status: int, message: str) -> RefusalError:
    return refuse(400 if status == 409 else status, message)  # the API reports no conflicts


def _describe_answer(item: BatchedCall, metadata: JsonObject | None) -> JsonObject:
    note = {} if metadata is None else {"metadata": metadata}
    if item.status == 200:
        return {"response": item.answer, **note}
    message = item.answer.get("error", {}).get("message", "")
    return {"error": {"code": _RPC_CODES.get(item.status, 13), "message": message}, **note}


def _describe_batch(_: Request, batch: Batch) -> JsonObject:
    """Describe a batch as an operation; only a batch that succeeds has an output."""
    state, count = batch.state, len(batch.items)
    succeeded, failed = batch.count(succeeded=True), batch.count(succeeded=False)
    stats = {
        "requestCount": count,
        "successfulRequestCount": succeeded,
        "failedRequestCount": failed,
        "pendingRequestCount": count - succeeded - failed,
    }
    ends_at = batch.spell_time(batch.ends_after_s)
    metadata: JsonObject = {
        "@type": f"{_TYPE}GenerateContentBatch",
        "name": f"batches/{batch.id}",
        **batch.details["shown"],
        "createTime": batch.spell_time(),
        "updateTime": ends_at if batch.has_ended else batch.spell_time(),
        # 64-bit numbers are texts in the JSON of protocol buffers, and 0 is left out.
        "batchStats": {name: str(number) for name, number in stats.items() if number},
        "state": f"BATCH_STATE_{_STATES.get(state, state.upper())}",
    }
    operation: JsonObject = {"name": metadata["name"], "metadata": metadata}
    if batch.has_ended:
        metadata["endTime"], operation["done"] = ends_at, True
    if state == "completed":
        pairs = zip(batch.items, batch.details["metadata"], strict=True)
        answers = {"inlinedResponses": [_describe_answer(*pair) for pair in pairs]}
        metadata["output"] = {"inlinedResponses": answers}
        response_type = {"@type": f"{_TYPE}GenerateContentBatchOutput"}
        operation["response"] = {**response_type, "inlinedResponses": answers}
    return operation
