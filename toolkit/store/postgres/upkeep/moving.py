"""A database of PostgreSQL that a data directory, or the database's artifacts, are moved to.

Until all rows are there and have been compared, the database is marked by a revision that no engine
opens.
"""

from collections.abc import Sequence
from typing import Final

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.blob_places.copying import BlobCopy, copy_blobs
from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.postgres.artifact_place import PlaceFit, check_fit, set_artifact_place
from toolkit.store.postgres.connections import Session
from toolkit.store.postgres.mark import claim_mark
from toolkit.store.postgres.schema import migrate_postgres_schema, read_postgres_version
from toolkit.store.postgres.upkeep.database import PostgresUpkeep
from toolkit.store.postgres.writing.writes import index_texts, insert_rows
from toolkit.store.read_connection import Row
from toolkit.store.schema import HEAD_REVISION, MOVING
from toolkit.store.text_index import TEXT_TABLES

_SET_REVISION_SQL: Final = "UPDATE alembic_version SET version_num = :revision"


class MoveTarget(PostgresUpkeep):
    """A database that rows of a data directory are moved to.

    Args:
        connection: in autocommit mode; the database is empty, or what a move from the same source
            left.
        url: its address.
        name: of the source, so that no other is taken for it; at most 24 characters.
    """

    def __init__(self, connection: Session, url: str, name: str) -> None:
        super().__init__(connection, url)
        self._moving = f"{MOVING}{name}"

    def is_begun(self) -> bool:
        """Tell whether it is what an interrupted move from the same source left."""
        version = read_postgres_version(self.connection)
        return version is not None and version.revision == self._moving

    def check_free(self, place: BlobPlace) -> None:
        """Check that the database is empty, or that of this move; nothing is written.

        Args:
            place: of its artifacts' bytes, which belongs to no other database.

        Raises:
            ServiceError: `UNAVAILABLE` when one of them is in use for something else.
        """
        if not self.is_begun() and read_postgres_version(self.connection) is not None:
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                "The database has tables of the toolkit already: name an empty one, or the one that"
                " a move of the same data directory was interrupted in.",
            )
        check_fit(self.connection, place, may_be_other=True)

    def create_tables(self) -> None:
        """Create the tables, unless they are those of this move."""
        if not self.is_begun():
            with self.begin():
                migrate_postgres_schema(self.connection)
                self.run(_SET_REVISION_SQL, revision=self._moving)

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        """Insert rows, which have the same columns, in one transaction."""
        with self.begin():
            if table in TEXT_TABLES:
                index_texts(self.connection, table, {row["id"]: row for row in rows})
            values = [[*row.values()] for row in rows]
            insert_rows(self.connection, table, tuple(rows[0]), values)

    def end(self, place: BlobPlace, *, sandbox: bool | None) -> None:
        """Have engines open the database from now on.

        Args:
            place: of its artifacts' bytes.
            sandbox: the world that the rows are of; none where they do not tell.
        """
        set_artifact_place(self.connection, place)
        with self.begin():
            claim_mark(self.connection, sandbox=sandbox, take_up=False)
            self.run(_SET_REVISION_SQL, revision=HEAD_REVISION)


def move_artifacts(
    url: str, sources: Sequence[BlobPlace], target: BlobPlace, *, may_be_lost: bool = False
) -> BlobCopy:
    """Copy a database's artifacts to another place, read all of them there, and remember it.

    What is there already is not copied again, so that an interrupted move goes on, and a place that
    was restored or replicated is taken as it is. Nothing is deleted.

    Args:
        url: of the database, which no engine has open.
        sources: where they have been, and then where else they may be.
        target: where they are from now on.
        may_be_lost: whether some of them may be lost.

    Raises:
        ServiceError: `UNAVAILABLE` when one of them cannot be used, an engine is running, or bytes
            are lost, and the database goes on with the place that it had.
    """
    with PostgresUpkeep.open(url) as database:
        if database.has_engines():
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                "An engine has the database open: stop all of them, and wait some seconds after"
                " one that was killed.",
            )
        connection, digests = database.connection, database.list_digests()
        check_fit(connection, target, may_be_other=True)
        fit = check_fit(connection, sources[0], may_be_other=True)
        # The old one may be gone for good: then all that is wanted has to be in the new one.
        if fit is PlaceFit.OTHER and {*digests} - {each.digest for each in target.list_entries()}:
            check_fit(connection, sources[0])
        moved = copy_blobs(digests, sources, target, may_be_lost=may_be_lost)
        set_artifact_place(connection, target, is_default=False)
    return moved
