"""Envelopes: one resource, or one page of a list (decisions, "Envelope")."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_json
from starlette.responses import Response

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


def page(records: Sequence[BaseModel], query: PageQuery | None = None) -> Response:
    """The envelope of a page; a full one has a cursor to the next."""
    items = [record.model_dump(mode="json", by_alias=True) for record in records]
    more = query is not None and len(items) == query.limit
    cursor = cursor_after(items[-1]["id"]) if more else None
    return _json({"data": {"items": items, "count": len(items), "next_cursor": cursor}}, 200)


def _json(value: object, status: int, headers: Mapping[str, str] | None = None) -> Response:
    return Response(to_json(value), status, headers, media_type="application/json")
