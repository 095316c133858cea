"""Repositories: the records of one table, each read together with the account that it belongs to.

The scope is part of the statement (`account_scope`), so a row of another account is not even read.
"""

from datetime import datetime
from functools import cached_property
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter

from toolkit.contract.base import format_rfc3339
from toolkit.contract.errors import build_not_found
from toolkit.contract.operations.queries import MAX_TOTAL
from toolkit.store.account_scope import ReadScope
from toolkit.store.changes import InsertRow, UpdateRow
from toolkit.store.read_connection import Row
from toolkit.store.store import Store


class Identified(Protocol):
    """A record with an id and a creation time, so that it can be stored."""

    id: str
    created_at: datetime


T = TypeVar("T", bound=Identified)


class Repository(Generic[T]):
    """The records of one table: their JSON, their other columns, and their owners.

    Args:
        word: name of a record in messages.
        without: status of rows that are hidden.
        visible: values of columns that every visible row has.
    """

    def __init__(
        self,
        store: Store,
        table: str,
        word: str,
        model: type[T],
        *,
        without: str | None = None,
        **visible: object,
    ) -> None:
        self._store = store
        self._table = table
        self._word = word
        self._model = model
        self._without = without
        self._visible = visible

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(_open_model(self._model))

    async def find_row(self, scope: ReadScope, record_id: str, *columns: str) -> Row | None:
        """Find the row of a record, with all or some of its columns; return None if hidden."""
        return await self._store.find_owned_row(
            self._table, scope, record_id, *columns, without=self._without, **self._visible
        )

    async def find_rows(self, scope: ReadScope, **equals: object) -> list[Row]:
        """Find a scope's rows whose columns have these values, oldest first."""
        return await self._store.find_owned_rows(self._table, scope, **self._visible, **equals)

    async def get_row(self, scope: ReadScope, record_id: str) -> Row:
        """Return the row of a record.

        Raises:
            RequestError: `NOT_FOUND`, also for another account's record.
        """
        row = await self.find_row(scope, record_id)
        if row is None:
            raise build_not_found(self._word, record_id)
        return row

    async def list_rows(
        self, scope: ReadScope, limit: int, before: str | None, *, by: str = "id"
    ) -> list[Row]:
        """List a page of a scope's rows, newest first, from below the id `before`."""
        return await self._store.list_page(
            self._table,
            scope,
            limit=limit,
            before=before,
            by=by,
            without=self._without,
            **self._visible,
        )

    async def count(self, scope: ReadScope, *, by: str = "id") -> int | None:
        """Count a scope's records as lists have them; None if there are more than 10,000."""
        total = await self._store.count_page(
            self._table, scope, MAX_TOTAL + 1, by=by, without=self._without, **self._visible
        )
        return None if total > MAX_TOTAL else total

    async def find(self, scope: ReadScope, record_id: str) -> T | None:
        """Find a record; return None if it is hidden, or another account's."""
        row = await self.find_row(scope, record_id)
        return None if row is None else self.read(row)

    async def get(self, scope: ReadScope, record_id: str) -> T:
        """Return a record.

        Raises:
            RequestError: `NOT_FOUND`, also for another account's record.
        """
        return self.read(await self.get_row(scope, record_id))

    async def list(
        self, scope: ReadScope, limit: int, before: str | None, *, by: str = "id"
    ) -> list[T]:
        """List a page of a scope's records, as `list_rows` does."""
        return [self.read(row) for row in await self.list_rows(scope, limit, before, by=by)]

    def read(self, row: Row) -> T:
        """Read the record of a row, including members that a later version has added."""
        record = self._adapter.validate_json(row["doc"])
        if isinstance(record, BaseModel) and not record.__pydantic_extra__:
            # Most records have none: make it an instance of the model itself, equal to any other.
            object.__setattr__(record, "__class__", self._model)
            object.__setattr__(record, "__pydantic_extra__", None)
        return record

    def make_insert(self, account_id: str, record: T, **columns: object) -> InsertRow:
        """Make the change that inserts the row of a record.

        Args:
            columns: columns of the row in addition to the record, its id and its creation time;
                `doc` for a record that is serialized in another way.
        """
        row: dict[str, object] = {
            "id": record.id,
            "account_id": account_id,
            "created_at": format_rfc3339(record.created_at),
        }
        if "doc" not in columns:
            row["doc"] = self._dump(record)
        row.update(self._visible)
        row.update(columns)
        return InsertRow(self._table, row)

    def make_update(self, record: T, **columns: object) -> UpdateRow:
        """Make the update that saves a record's current state, and some columns."""
        return UpdateRow(self._table, record.id, {"doc": self._dump(record), **columns})

    def _dump(self, record: T) -> str:
        if isinstance(record, BaseModel):
            return record.model_dump_json()
        return self._adapter.dump_json(record).decode()


def _open_model(model: type[T]) -> type[T]:
    """Make a model whose records keep members that it does not know.

    An engine may rewrite a document while two versions work on the same database. Without
    these members, the later version's additions would be lost.
    """
    if not issubclass(model, BaseModel):
        return model
    config = ConfigDict(extra="allow")
    members = {"__module__": model.__module__, "__doc__": model.__doc__, "model_config": config}
    return type(model.__name__, (model,), members)
