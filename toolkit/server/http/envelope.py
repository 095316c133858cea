"""Envelopes: one resource, or one page of a list (decisions, "Envelope")."""

from collections.abc import Mapping, Sequence

from pydantic import BaseModel
from pydantic_core import to_json
from starlette.responses import Response

from toolkit.contract.base import dump_envelope, dump_record
from toolkit.contract.operations.queries import PageQuery
from toolkit.engine.concurrency.pacing import Pacer
from toolkit.server.operations import find_next_cursor


def render_resource(
    record: BaseModel, status: int, headers: Mapping[str, str] | None = None
) -> Response:
    """Render the envelope of one resource."""
    return Response(dump_envelope(record), status, headers, media_type="application/json")


async def render_page(
    records: Sequence[BaseModel],
    status: int,
    query: PageQuery | None = None,
    total: int | None = None,
) -> Response:
    """Render the envelope of a page; a full one has a cursor to the next.

    Args:
        records: the records of the page.
        status: the status of the answer.
        query: the query of a list that has pages.
        total: the number of all records of the list, if it was counted.
    """
    items: list[bytes] = []
    async with Pacer() as pacer:
        for record in records:
            items.append(dump_record(record))
            await pacer.pause()
    next_cursor = find_next_cursor(records, query)
    after = to_json({"count": len(items), "total": total, "next_cursor": next_cursor})
    body = b'{"data":{"items":[%s],%s}' % (b",".join(items), after[1:])
    return Response(body, status, media_type="application/json")
