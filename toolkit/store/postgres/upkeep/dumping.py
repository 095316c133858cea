"""A backup of a database of PostgreSQL, by pg_dump, and of its artifacts: of one moment."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.maintenance.backup import BackupResult, open_target, store_bytes
from toolkit.store.postgres.artifact_place import check_fit
from toolkit.store.postgres.opening import open_existing
from toolkit.store.private_files import create_private_file
from toolkit.store.read_statements import STORED_DIGESTS_SQL

DUMP_NAME: Final = "database.dump"
PROGRAM: Final = "pg_dump"


def back_up_postgres(url: str, target: Path, place: BlobPlace) -> BackupResult:
    """Dump a database as it is at one moment, and copy the artifacts' bytes of that moment.

    Bytes in object storage are not copied, but missed if they are not there.

    Args:
        url: its address.
        target: the new directory; it appears once it is complete, and not before.
        place: of its artifacts' bytes.

    Raises:
        ServiceError: `UNAVAILABLE` when the database cannot be used, there is no pg_dump, or
            `target` exists.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            "A backup of a database needs pg_dump: install PostgreSQL's client programs, such as by"
            " `apt install postgresql-client`.",
        )
    with open_target(target) as partial:
        with open_existing(url, newest=True) as connection:
            check_fit(connection, place)
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                (snapshot,) = connection.execute("SELECT pg_export_snapshot()").fetchone() or ("",)
                _dump(program, url, str(snapshot), partial / DUMP_NAME)
                digests = [str(row[0]) for row in connection.execute(STORED_DIGESTS_SQL).fetchall()]
        lost, elsewhere = store_bytes(place, partial, digests)
    return BackupResult.of(target, digests, lost, elsewhere)


def _dump(program: str, url: str, snapshot: str, target: Path) -> None:
    """Run pg_dump; a password goes by its environment, which no list of processes shows.

    Raises:
        ServiceError: `UNAVAILABLE` when it fails.
    """
    parameters: dict[str, Any] = conninfo_to_dict(url)
    password = parameters.pop("password", None)
    environment = {**os.environ, **({"PGPASSWORD": str(password)} if password else {})}
    command = [
        program, "--format", "custom", "--no-password", "--snapshot", snapshot,
        "--file", str(target), "--dbname", make_conninfo(**parameters),
    ]  # fmt: skip
    create_private_file(target)
    done = subprocess.run(command, env=environment, capture_output=True, check=False, text=True)  # noqa: S603
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["it failed"])[0]
        told = said.replace(str(password), "…") if password else said
        raise ServiceError(ErrorCode.UNAVAILABLE, f"pg_dump could not copy the database: {told}.")
