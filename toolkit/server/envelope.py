"""Envelopes: one resource, or one page of a list (decisions, "Envelope")."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_json
from starlette.responses import Response

from toolkit.engine.pacing import Pacer
from toolkit.server.paging import PageQuery, cursor_after


def one(record: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """The envelope of one resource: its id and status beside it, its error where it failed."""
    data = record.model_dump(mode="json", by_alias=True)
    envelope: dict[str, Any] = {"id": data["id"]} if "id" in data else {}
    if "status" in data:
        envelope["status"] = data["status"]
    envelope["data"] = data
    if data.get("error") is not None:
        envelope["error"] = data["error"]
    return _json(envelope, status, headers)


async def page(records: Sequence[BaseModel], query: PageQuery | None = None) -> Response:
    """The envelope of a page; a full one has a cursor to the next."""
    more = query is not None and len(records) == query.limit
    items: list[bytes] = []
    last: dict[str, Any] = {}
    async with Pacer() as pacer:
        for record in records:
            last = record.model_dump(mode="json", by_alias=True)
            items.append(to_json(last))
            await pacer.pause()
    after = to_json(
        {"count": len(items), "next_cursor": cursor_after(last["id"]) if more else None}
    )
    body = b'{"data":{"items":[%s],%s}' % (b",".join(items), after[1:])
    return Response(body, 200, media_type="application/json")


def _json(value: object, status: int, headers: Mapping[str, str] | None = None) -> Response:
    return Response(to_json(value), status, headers, media_type="application/json")
