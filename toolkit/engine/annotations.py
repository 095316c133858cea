"""The annotations of runs, workflows and tasks: tags and a note, which their owner may change.

They are stored apart from the records, because the worker writes each record as a whole.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from toolkit.contract.annotations import WorkAnnotate
from toolkit.contract.base import format_rfc3339, now
from toolkit.store import Change, Conflict, InsertRow, Row, Store, UpdateRow

R = TypeVar("R", bound=BaseModel)
_TABLE = "annotations"


class Annotations:
    """The tags and notes of all work in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def find(self, work_id: str) -> tuple[list[str], str | None]:
        """Find the present tags and note of the work."""
        row = await self._store.get_row(_TABLE, work_id, "tags", "note")
        return ([], None) if row is None else _read_annotation(row)

    async def show(self, record: R, work_id: str) -> R:
        """Return a record with the present tags and note of the work."""
        row = await self._store.get_row(_TABLE, work_id, "tags", "note")
        return record if row is None else annotate_record(record, row)

    async def change(self, account_id: str, work_id: str, request: WorkAnnotate) -> None:
        """Set the tags, the note or both of the account's work; None leaves a value as it is."""
        values: dict[str, object] = {}
        if request.tags is not None:
            values["tags"] = _dump_tags(request.tags)
        if request.note is not None:
            values["note"] = request.note
        if not values:
            return
        if await self._store.get_row(_TABLE, work_id, "id") is None:
            try:
                await self._store.write([_make_insert(account_id, work_id, values)])
            except Conflict:
                pass  # another request was first, so the row exists now
            else:
                return
        await self._store.write([UpdateRow(_TABLE, work_id, values)])


def build_annotation(account_id: str, work_id: str, tags: Sequence[str], note: str) -> list[Change]:
    """Build the changes that annotate work at its acceptance; empty without tags and note."""
    if not tags and not note:
        return []
    return [_make_insert(account_id, work_id, {"tags": _dump_tags(tags), "note": note})]


def annotate_record(record: R, row: Mapping[str, Any]) -> R:
    """Return a copy of a record with a row's tags and note; without tags, the record itself."""
    if row["tags"] is None:
        return record
    tags, note = _read_annotation(row)
    return record.model_copy(update={"tags": tags, "note": note})


def _read_annotation(row: Mapping[str, Any]) -> tuple[list[str], str | None]:
    return json.loads(row["tags"]), row["note"] or None


def list_given_tags(tags: Sequence[str]) -> list[str]:
    """Return the tags in their order, without duplicates."""
    return list(dict.fromkeys(tags))


def _dump_tags(tags: Sequence[str]) -> str:
    return json.dumps(list_given_tags(tags), ensure_ascii=False)


def _make_insert(account_id: str, work_id: str, values: Row) -> InsertRow:
    row = {"id": work_id, "account_id": account_id, "created_at": format_rfc3339(now())}
    return InsertRow(_TABLE, {**row, "tags": "[]", "note": "", **values})
