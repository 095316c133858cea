"""The place of a database's artifacts: the database names it, and it names the database.

The database's part is a text that its dumps include: the database's id, a token that is new for
each place, and the place's name. The place's part is a mark next to the bytes (`MARK_NAME`)
with the id and the token. A place without a mark is recognized by its bytes.
"""

import logging
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Protocol, Self

from toolkit.contract.errors import ServiceError
from toolkit.store.blob_places.place import MARK_NAME, BlobPlace
from toolkit.store.changes import make_unusable_error

log = logging.getLogger(__name__)
_KINDS: Final = ("given", "default")


class PlaceRecords(Protocol):
    """A database's records of the place where its artifacts' bytes are."""

    def read_mark(self) -> str:
        """Read the text by which the database names its artifacts' place; empty without one."""

    def write_mark(self, text: str) -> None:
        """Write the text by which the database names its artifacts' place."""

    def list_samples(self) -> Sequence[str]:
        """List the SHA-256 of some bytes that the artifacts' place should have."""

    def has_other_engines(self, engine_id: str) -> bool:
        """Check whether another engine has the database open."""


@dataclass(frozen=True, slots=True)
class ArtifactMark:
    """A database's record of the place where its artifacts' bytes are.

    Attributes:
        database: id of the database, shared by its copies.
        token: random text, new for each place.
        is_default: whether the place is the default, without a setting.
    """

    database: str
    token: str
    is_default: bool
    name: str

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse the text by which a database names its artifacts' place; None if it is invalid."""
        parts = text.split(maxsplit=3)
        if len(parts) != 4 or parts[2] not in _KINDS:
            return None
        return cls(parts[0], parts[1], parts[2] == _KINDS[True], parts[3])

    def __str__(self) -> str:
        return f"{self.of_place} {_KINDS[self.is_default]} {self.name}"

    @property
    def of_place(self) -> str:
        """The text of the mark that is stored next to the bytes."""
        return f"{self.database} {self.token}"


class PlaceFit(Enum):
    """Whether a folder or object storage is the place of a database's artifacts.

    `OURS` is the right place, and `OTHER` is not. `UNMARKED` is the right place without its mark.
    `OPEN` is any place if the database remembers none. `FOREIGN` belongs to another database.
    `UNKNOWN` has the right name but cannot be read.
    """

    OURS = auto()
    UNMARKED = auto()
    OPEN = auto()
    OTHER = auto()
    FOREIGN = auto()
    UNKNOWN = auto()


class PlaceOwnership:
    """The check of whether a folder or object storage is the place of a database's artifacts."""

    def __init__(self, records: PlaceRecords, place: BlobPlace) -> None:
        self._records = records
        self._place = place

    def read_mark(self) -> ArtifactMark | None:
        """Read the database's record of its artifacts' place; None if it has no valid record."""
        return ArtifactMark.parse(self._records.read_mark())

    def check(self, *, may_be_other: bool = False) -> PlaceFit:
        """Reject artifact storage that is known not to be the database's.

        Args:
            may_be_other: whether to reject only a place that belongs to another database.

        Raises:
            ServiceError: `UNAVAILABLE`.
        """
        mark = self.read_mark()
        fit = self._find_fit(mark)
        if fit is PlaceFit.FOREIGN:
            raise self._make_foreign_error()
        if fit is PlaceFit.OTHER and mark is not None and not may_be_other:
            raise make_unusable_error(
                f"The artifacts of this database are in {mark.name}, and not in"
                f" {self._place.name}: set their place (--artifact-url, TOOLKIT_ARTIFACT_URL), or"
                " move them with `toolkit migrate --artifacts URL`."
            )
        return fit

    def check_known(self) -> None:
        """Reject artifact storage that is not known to be the database's, before bytes are deleted.

        Raises:
            ServiceError: `UNAVAILABLE`.
        """
        fit = self.check()
        if fit is PlaceFit.UNKNOWN:
            raise make_unusable_error(f"The artifacts in {self._place.name} cannot be reached now.")
        if fit is PlaceFit.OPEN:
            raise make_unusable_error(
                "The place of the artifacts is unknown until an engine of this version has opened"
                " the database: start an engine (`toolkit serve --database`), then prune."
            )

    def _find_fit(self, mark: ArtifactMark | None) -> PlaceFit:
        is_named = mark is None or mark.name == self._place.name
        try:
            text = self._place.read_mark()
            if text and (mark is None or text.split()[0] != mark.database):
                return PlaceFit.FOREIGN
            if mark is None:
                return PlaceFit.OPEN
            # Copies of a bucket have other names; a folder of the same name differs by machine.
            if text == mark.of_place and (is_named or not self._place.is_remote):
                return PlaceFit.OURS
            if not is_named:
                return PlaceFit.OTHER
            present, total = self._count_samples()
            return PlaceFit.UNMARKED if present or not total else PlaceFit.OTHER
        except (OSError, ServiceError) as error:
            log.info("the place of artifacts could not be checked: %s", error)
            return PlaceFit.UNKNOWN if is_named else PlaceFit.OTHER

    def _count_samples(self) -> tuple[int, int]:
        """Count the sampled artifacts whose bytes the storage has, and all samples."""
        digests = self._records.list_samples()
        present = 0
        for digest in digests:
            with suppress(FileNotFoundError):
                self._place.find_size(digest)
                present += 1
        return present, len(digests)

    def claim(self, engine_id: str) -> str | None:
        """Record the database and its artifacts' place in each other, when an engine opens both.

        A database without a mark takes the place that it is opened with. It takes another place if
        no bytes are missing there, and no other engine has the database open.

        Returns:
            A warning if this engine's folder is its own and other engines have theirs, or None.

        Raises:
            ServiceError: `UNAVAILABLE` if the place is not the database's.
        """
        fit, mark = self.check(may_be_other=True), self.read_mark()
        if fit is PlaceFit.UNMARKED and mark is not None:
            self._write_mark(mark, replace=True)
        elif fit is PlaceFit.OPEN or (fit is PlaceFit.OTHER and self._may_move(mark, engine_id)):
            self.take()
        elif fit is PlaceFit.UNKNOWN:
            log.warning(
                "%s cannot be checked now; it is assumed to be the database's", self._place.name
            )
        elif fit is PlaceFit.OTHER:
            return self.explain_folders()
        return None

    def _may_move(self, mark: ArtifactMark | None, engine_id: str) -> bool:
        """Check whether the database may move its artifacts to another place.

        It may while it has no bytes anywhere, and if a data directory was restored in another
        folder; never while another engine has it open.
        """
        if self._records.has_other_engines(engine_id):
            return False
        is_default = self._place.is_default and mark is not None and mark.is_default
        present, total = self._count_samples()
        return total == 0 or (is_default and present == total)

    def take(self, *, is_default: bool | None = None) -> None:
        """Record the place in the database as that of its artifacts, and mark it as the database's.

        Args:
            is_default: whether engines need no setting for it; the place's own value by default.

        Raises:
            ServiceError: `UNAVAILABLE` if another database marked the place first.
        """
        old = self.read_mark()
        mark = ArtifactMark(
            secrets.token_hex(8) if old is None else old.database,
            secrets.token_hex(4),
            self._place.is_default if is_default is None else is_default,
            self._place.name,
        )
        # The database comes first: every database would reject a place whose mark none knows.
        self._records.write_mark(str(mark))
        self._write_mark(mark, replace=False)

    def _write_mark(self, mark: ArtifactMark, *, replace: bool) -> None:
        """Mark the artifacts' place; if that fails, only log it: its name and bytes show it too."""
        text = None
        try:
            self._place.write_mark(mark.of_place, replace=replace)
            text = self._place.read_mark()
            if text and text.split()[0] == mark.database and text != mark.of_place:
                self._place.write_mark(mark.of_place, replace=True)
        except (OSError, ServiceError) as error:
            log.warning("%s could not be marked as the database's: %s", self._place.name, error)
        if text and text.split()[0] != mark.database:
            raise self._make_foreign_error()

    def explain_folders(self) -> str | None:
        """Return a warning that engines keep artifacts in separate folders, as no place was set.

        Returns:
            None if the place is the database's by now.

        Raises:
            ServiceError: `UNAVAILABLE` if a place was set and is not the database's.
        """
        mark = self.read_mark()
        if mark is not None and mark.is_default and self._place.is_default:
            return (
                f"This engine stores artifacts in {self._place.name}, and other engines in"
                f" {mark.name}: they do not find each other's artifacts. Move the artifacts with"
                " `toolkit migrate --artifacts`, then set the new place for all engines"
                " (--artifact-url, TOOLKIT_ARTIFACT_URL)."
            )
        self.check()
        return None

    def _make_foreign_error(self) -> ServiceError:
        return make_unusable_error(
            f"The artifacts in {self._place.name} belong to another database: set another place"
            " (--artifact-url, TOOLKIT_ARTIFACT_URL), or delete"
            f" {MARK_NAME} there if that database no longer exists."
        )
