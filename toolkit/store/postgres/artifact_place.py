"""The place of a database's artifacts: the database names it, and it names the database.

The database's part is the comment of a table, so that dumps have it, too: the database's own id, a
token that is new with each place, and the place's name. The place's part is a mark beside the bytes
(`MARK_NAME`) with the id and the token. A place without a mark is known by the bytes it has.
"""

import logging
import secrets
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Self

from psycopg import errors, sql

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.blob_places.place import MARK_NAME, BlobPlace
from toolkit.store.limits.limit_store import ENGINE_LIFE_S, ENGINE_PREFIX
from toolkit.store.postgres.advisory_locks import describe_holder, hold_lock
from toolkit.store.postgres.connections import Session
from toolkit.store.postgres.writing.statements import CLOCK_SQL

log = logging.getLogger(__name__)

_LOCK: Final = "artifacts"
# Storage that does not answer holds up who has the lock for minutes, one engine after the other.
LOCK_WAIT_S: Final = 10.0
_READ_SQL: Final = "SELECT obj_description(to_regclass('artifacts'), 'pg_class')"
_WRITE_SQL: Final = "COMMENT ON TABLE artifacts IS {}"
_SAMPLE_SQL: Final = (
    "SELECT sha256 FROM artifacts WHERE content IS NULL AND deleted = FALSE LIMIT 5"
)
_ENGINES_SQL: Final = (
    f"SELECT id, doc FROM shared_limits WHERE id LIKE '{ENGINE_PREFIX}%'"  # noqa: S608 - our names
    f" AND changed_at >= {CLOCK_SQL} - {ENGINE_LIFE_S}"
)
_KINDS: Final = ("given", "default")


@dataclass(frozen=True, slots=True)
class ArtifactMark:
    """What a database remembers of the place of its artifacts.

    Attributes:
        database: the id of the database, and of its copies.
        token: made anew with each place.
        is_default: whether no engine was told of a place.
        name: the place's.
    """

    database: str
    token: str
    is_default: bool
    name: str

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read a mark from the comment that it is; none where there is none."""
        parts = text.split(maxsplit=3)
        if len(parts) != 4 or parts[2] not in _KINDS:
            return None
        return cls(parts[0], parts[1], parts[2] == _KINDS[True], parts[3])

    def __str__(self) -> str:
        return f"{self.of_place} {_KINDS[self.is_default]} {self.name}"

    @property
    def of_place(self) -> str:
        """What stands beside the bytes."""
        return f"{self.database} {self.token}"


class PlaceFit(Enum):
    """Whether a place is the one of a database's artifacts.

    `UNMARKED` is the one, but for its mark; `OPEN` is any where the database remembers none;
    `FOREIGN` is another database's; `UNKNOWN` cannot be asked, and has the right name.
    """

    OURS = auto()
    UNMARKED = auto()
    OPEN = auto()
    OTHER = auto()
    FOREIGN = auto()
    UNKNOWN = auto()


def read_artifact_mark(connection: Session) -> ArtifactMark | None:
    """Read what a database remembers of the place of its artifacts; one without tables, nothing."""
    (text,) = connection.execute(_READ_SQL).fetchone() or (None,)
    return ArtifactMark.parse(str(text or ""))


def _find_fit(connection: Session, place: BlobPlace, mark: ArtifactMark | None) -> PlaceFit:
    """Find out whether a place is that of a database's artifacts; nothing is changed."""
    is_named = mark is None or mark.name == place.name
    try:
        found = place.read_mark()
        if found and (mark is None or found.split()[0] != mark.database):
            return PlaceFit.FOREIGN
        if mark is None:
            return PlaceFit.OPEN
        # Of a bucket there are copies by other names; a folder has another one on each machine.
        if found == mark.of_place and (is_named or not place.is_remote):
            return PlaceFit.OURS
        if not is_named:
            return PlaceFit.OTHER
        there, wanted = _count_samples(connection, place)
        return PlaceFit.UNMARKED if there or not wanted else PlaceFit.OTHER
    except (OSError, ServiceError) as error:
        log.info("the place of artifacts could not be looked at: %s", error)
        return PlaceFit.UNKNOWN if is_named else PlaceFit.OTHER


def _count_samples(connection: Session, place: BlobPlace) -> tuple[int, int]:
    """Count some of the database's bytes: those that a place has, and all that it should have."""
    digests = [str(row[0]) for row in connection.execute(_SAMPLE_SQL).fetchall()]
    found = 0
    for digest in digests:
        with suppress(FileNotFoundError):
            place.find_size(digest)
            found += 1
    return found, len(digests)


def claim_artifact_place(connection: Session, place: BlobPlace, engine_id: str) -> str | None:
    """Have a database and the place of its artifacts know each other, as an engine opens both.

    A database without a mark takes the place that it is opened with. It takes another one where no
    bytes are missed by that, and no other engine has it open.

    Args:
        connection: to the database, in autocommit mode.
        place: where the engine stores bytes.
        engine_id: the engine's, which has told the others that it is there.

    Returns:
        what is to be told where this engine's folder is its own, and others have theirs.

    Raises:
        ServiceError: `UNAVAILABLE` when the place is not that of the database, or another engine
            takes too long to find out whether its own is.
    """
    try:
        return _claim_place(connection, place, engine_id)
    except errors.LockNotAvailable as error:
        mark, holder = read_artifact_mark(connection), describe_holder(connection, _LOCK)
        if mark is None or mark.name != place.name or not place.is_remote:
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                f"Whether the artifacts in {place.name} are this database's cannot be looked at:"
                f" {holder} has been looking for more than {LOCK_WAIT_S:g} s.",
                retry_after=LOCK_WAIT_S,
            ) from error
        log.warning(
            "%s cannot be looked at now, as %s has been looking for more than %g s;"
            " it is taken for the database's", place.name, holder, LOCK_WAIT_S,
        )  # fmt: skip
    return None


def _claim_place(connection: Session, place: BlobPlace, engine_id: str) -> str | None:
    with hold_lock(connection, _LOCK, timeout_s=LOCK_WAIT_S):
        fit = check_fit(connection, place, may_be_other=True)
        may_move = fit is PlaceFit.OTHER and _may_move(connection, place, engine_id)
        if fit is PlaceFit.UNMARKED and (mark := read_artifact_mark(connection)) is not None:
            _write_mark(place, mark, replace=True)
        elif fit is PlaceFit.OPEN or may_move:
            set_artifact_place(connection, place)
        elif fit is PlaceFit.UNKNOWN:
            log.warning("%s cannot be looked at now; it is taken for the database's", place.name)
        elif fit is PlaceFit.OTHER:
            return explain_folders(connection, place)
    return None


def check_fit(connection: Session, place: BlobPlace, *, may_be_other: bool = False) -> PlaceFit:
    """Refuse a place that is known to be another one than that of a database's artifacts.

    Args:
        connection: to the database.
        place: where its artifacts are supposed to be.
        may_be_other: refuse only a place that belongs to another database.

    Returns:
        how it fits, which may be unknown.

    Raises:
        ServiceError: `UNAVAILABLE`.
    """
    mark = read_artifact_mark(connection)
    fit = _find_fit(connection, place, mark)
    if fit is PlaceFit.FOREIGN:
        raise _make_foreign_error(place)
    if fit is PlaceFit.OTHER and mark is not None and not may_be_other:
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            f"The artifacts of this database are in {mark.name}, and not in {place.name}: name"
            " their place (--artifact-url, TOOLKIT_ARTIFACT_URL), or move them by"
            " `toolkit migrate --artifacts URL`.",
        )
    return fit


def set_artifact_place(
    connection: Session, place: BlobPlace, *, is_default: bool | None = None
) -> None:
    """Have a database remember a place, and mark that.

    Args:
        connection: to the database.
        place: of its artifacts, from now on.
        is_default: whether engines need not be told of it; as the place says, by default.

    Raises:
        ServiceError: `UNAVAILABLE` when another database was quicker to mark it.
    """
    old = read_artifact_mark(connection)
    mark = ArtifactMark(
        secrets.token_hex(8) if old is None else old.database,
        secrets.token_hex(4),
        place.is_default if is_default is None else is_default,
        place.name,
    )
    # First of all: a place whose mark no database knows would be refused to each.
    connection.execute(sql.SQL(_WRITE_SQL).format(sql.Literal(str(mark))))
    _write_mark(place, mark, replace=False)


def _write_mark(place: BlobPlace, mark: ArtifactMark, *, replace: bool) -> None:
    """Mark a place; one that cannot be marked is known by its name and its bytes.

    Raises:
        ServiceError: `UNAVAILABLE` when another database was quicker.
    """
    found = None
    try:
        place.write_mark(mark.of_place, replace=replace)
        found = place.read_mark()
        if found and found.split()[0] == mark.database and found != mark.of_place:
            place.write_mark(mark.of_place, replace=True)
    except (OSError, ServiceError) as error:
        log.warning("%s could not be marked as the database's: %s", place.name, error)
    if found and found.split()[0] != mark.database:
        raise _make_foreign_error(place)


def list_engines(connection: Session) -> dict[str, str]:
    """List the engines that have a database open, each with the document of its row."""
    rows = connection.execute(_ENGINES_SQL.encode()).fetchall()
    return {str(row[0]).removeprefix(ENGINE_PREFIX): str(row[1]) for row in rows}


def _may_move(connection: Session, place: BlobPlace, engine_id: str) -> bool:
    """Tell whether a database may have its artifacts in another place from now on.

    That is while it has no bytes anywhere, and where a data directory was restored in another
    folder; and never while another engine has it open.
    """
    if list_engines(connection).keys() - {engine_id}:
        return False
    mark = read_artifact_mark(connection)
    is_default = place.is_default and mark is not None and mark.is_default
    found, wanted = _count_samples(connection, place)
    return wanted == 0 or (is_default and found == wanted)


def explain_folders(connection: Session, place: BlobPlace) -> str | None:
    """Explain that engines keep artifacts in folders of their own, as no place was named to any.

    Args:
        connection: to the database.
        place: which was another one than that of its artifacts; None is returned if it is no more.

    Raises:
        ServiceError: `UNAVAILABLE` when one was named.
    """
    mark = read_artifact_mark(connection)
    if mark is not None and mark.is_default and place.is_default:
        return (
            f"This engine keeps artifacts in {place.name}, and others theirs in {mark.name}: what"
            " one stores, another does not find. Name one place for all (--artifact-url,"
            " TOOLKIT_ARTIFACT_URL), after `toolkit migrate --artifacts` has moved there what is."
        )
    check_fit(connection, place)
    return None


def _make_foreign_error(place: BlobPlace) -> ServiceError:
    """Make the error for a place that belongs to another database."""
    return ServiceError(
        ErrorCode.UNAVAILABLE,
        f"The artifacts in {place.name} belong to another database: name another place"
        " (--artifact-url, TOOLKIT_ARTIFACT_URL), or, if that database is gone for good, delete"
        f" {MARK_NAME} there.",
    )
