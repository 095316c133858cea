"""Artifacts: bytes in the content-addressed store, and a record of each in the database."""

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from toolkit.contract.artifacts import MEDIA_TYPES, Artifact
from toolkit.contract.base import now
from toolkit.contract.errors import ErrorCode, RequestError, ServiceError, ToolkitError
from toolkit.contract.ids import Prefix, new_id
from toolkit.engine.concurrency.fair_semaphore import FairSemaphore
from toolkit.engine.concurrency.threads import start_thread
from toolkit.engine.context import EngineContext
from toolkit.engine.records import name_file, read_artifact
from toolkit.engine.request_context import RequestContext
from toolkit.engine.services.idempotency import commit_accepted
from toolkit.engine.services.media_types import find_media_type
from toolkit.engine.services.record_reader import RecordReader
from toolkit.plugins import Blob
from toolkit.store import Content, InsertRow, ReadScope, compute_sha256
from toolkit.store.blobs import REQUEST_LIMIT_S
from toolkit.store.writing.writer import WORK_WAIT_S

log = logging.getLogger(__name__)

# SQLite reads and writes content up to this size faster than a file system does, and in the
# same transaction as the record.
MAX_INLINE_BYTES = 4096
MAX_INLINE_HASH_BYTES = 256 * 1024
# Maximum number of uploads in memory as a whole, to be parsed as JSON; other uploads never are.
MAX_IN_MEMORY = 2
# The longest time between storing bytes and writing their record; deletion of bytes waits as long.
RECORD_GRACE_S = 5.0
DELETE_WAIT_S = 0.2
RESULT_RETRY_S = 1.0  # seconds between two attempts to store a result


class ResultNotStoredError(ServiceError):
    """A paid result could not be stored within the waiting time; it is not requested again."""


@dataclass(frozen=True, slots=True)
class StoredArtifact:
    """An artifact's record, with its bytes if the row holds them."""

    artifact: Artifact
    content: bytes | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Return an artifact from its row."""
        return cls(read_artifact(row), row["content"])


class Artifacts(RecordReader[Artifact]):
    """The artifacts that jobs produce and callers upload."""

    def __init__(self, core: EngineContext) -> None:
        super().__init__(core, core.records.artifacts)
        self._delete_tasks: set[asyncio.Task[None]] = set()
        self._in_memory = FairSemaphore(MAX_IN_MEMORY)

    @staticmethod
    def new_id() -> str:
        """Return an id for an artifact that is about to be stored."""
        return new_id(Prefix.ARTIFACT)

    async def store(
        self, account_id: str, blob: Blob, *, job_id: str | None, artifact_id: str | None = None
    ) -> tuple[StoredArtifact, InsertRow]:
        """Store the bytes; the caller commits the record, together with the work it belongs to.

        A crash in between leaves bytes that no record names, never a record without bytes.

        The result may have been paid for, so it stays in memory while it cannot be stored, and no
        call begins meanwhile.

        Raises:
            RequestError: `PAYLOAD_TOO_LARGE` if it exceeds the account's quota.
            ResultNotStoredError: if it could not be stored for too long.
        """
        media_type = blob.media_type.partition(";")[0].strip().lower()
        if media_type not in MEDIA_TYPES:
            media_type = "application/octet-stream"
        artifact_id = artifact_id or self.new_id()
        give_up = time.monotonic() + WORK_WAIT_S
        is_waiting = False
        try:
            while True:
                try:
                    return await self._store_content(
                        account_id,
                        artifact_id,
                        blob.data,
                        media_type,
                        blob.metadata,
                        job_id,
                        self._core.store.put_paid_blob,
                    )
                except ServiceError as error:
                    if error.code is not ErrorCode.UNAVAILABLE:
                        raise
                    if time.monotonic() > give_up:
                        raise ResultNotStoredError(error.code, error.message) from error
                    if not is_waiting:
                        log.warning("the result of %s waits to be stored: %s", job_id, error)
                    is_waiting = True
                await asyncio.sleep(RESULT_RETRY_S)
        except BaseException:
            if is_waiting:
                self._core.store.give_up_blob()
            raise

    async def _store_content(
        self,
        account_id: str,
        artifact_id: str,
        content: Content,
        media_type: str,
        metadata: Mapping[str, object],
        job_id: str | None,
        put_blob: Callable[[str, Content], Awaitable[None]],
    ) -> tuple[StoredArtifact, InsertRow]:
        size_bytes = len(content)
        await self._core.quotas.check_storage(account_id, size_bytes)
        self._core.quotas.add_pending(account_id, artifact_id, size_bytes)
        small = None
        try:
            sha256 = await _hash_content(content)
            if size_bytes > MAX_INLINE_BYTES:
                await put_blob(sha256, content)
            else:
                small = content if isinstance(content, bytes) else content.read()
        except BaseException:
            self._core.quotas.remove_pending(artifact_id)
            raise
        artifact = Artifact(
            id=artifact_id,
            media_type=media_type,
            size_bytes=size_bytes,
            sha256=sha256,
            job_id=job_id,
            filename=name_file(artifact_id, media_type),
            created_at=now(),
            metadata=dict(metadata),
        )
        return StoredArtifact(artifact, small), self._make_insert(account_id, artifact, small)

    def _make_insert(self, account_id: str, artifact: Artifact, content: bytes | None) -> InsertRow:
        return self._records.make_insert(
            account_id,
            artifact,
            job_id=artifact.job_id,
            sha256=artifact.sha256,
            size_bytes=artifact.size_bytes,
            content=content,
        )

    def duplicate(
        self, entry: StoredArtifact, account_id: str, job_id: str
    ) -> tuple[StoredArtifact, InsertRow]:
        """Make another record, with a new id and job, for bytes that are already stored."""
        artifact_id = self.new_id()
        update = {"id": artifact_id, "job_id": job_id, "created_at": now()}
        update["filename"] = name_file(artifact_id, entry.artifact.media_type)
        artifact = entry.artifact.model_copy(update=update)
        return StoredArtifact(artifact, entry.content), self._make_insert(
            account_id, artifact, entry.content
        )

    async def find_intact(self, scope: ReadScope, artifact_id: str | None) -> StoredArtifact | None:
        """Find an artifact; return None unless both its record and its bytes are present.

        Raises:
            ServiceError: `UNAVAILABLE` if the check fails now: otherwise an existing result would
                be paid for again.
        """
        try:
            entry = await self.find(scope, artifact_id or "")
            if entry.content is None:
                size_bytes = await self._core.store.blobs.get_size(entry.artifact.sha256)
                return entry if size_bytes == entry.artifact.size_bytes else None
        except RequestError:
            return None
        return entry

    async def create(
        self, context: RequestContext, content: Content, metadata: Mapping[str, object]
    ) -> Artifact:
        """Store an uploaded artifact; its media type is detected from its bytes.

        Raises:
            RequestError: `PAYLOAD_TOO_LARGE`.
        """
        if len(content) > self._core.settings.upload_limit_bytes:
            raise RequestError(ErrorCode.PAYLOAD_TOO_LARGE)
        media_type = await find_media_type(
            content, self._core.driver, self._in_memory, context.account_id
        )
        artifact_id = self.new_id()
        entry, insert = await self._store_content(
            context.account_id,
            artifact_id,
            content,
            media_type,
            metadata,
            None,
            self._core.store.put_blob,
        )
        try:
            await commit_accepted(self._core, context, [insert], entry.artifact)
        finally:
            self._core.quotas.remove_pending(entry.artifact.id)
        return entry.artifact

    async def find(self, scope: ReadScope, artifact_id: str) -> StoredArtifact:
        """Find one artifact, with its bytes if they are few.

        Raises:
            RequestError: `NOT_FOUND`, also for another account's artifact.
        """
        row = await self._records.get_row(scope, artifact_id)
        return StoredArtifact.of(row)

    async def delete(self, context: RequestContext, artifact_id: str) -> Artifact:
        """Delete an artifact; delete its bytes too, unless another artifact has the same bytes.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` while the work that uses it is unfinished.
        """
        artifact = await self.get(context, artifact_id)
        if artifact.job_id is not None:
            job = await self._core.store.get_row("jobs", artifact.job_id, "root_id")
            root = (
                await self._core.store.get_row("roots", str(job["root_id"]), "open")
                if job
                else None
            )
            if root is not None and root["open"]:
                raise RequestError(
                    ErrorCode.CONFLICT,
                    f"The artifact is part of `{job['root_id'] if job else ''}`, which has not"
                    " ended yet.",
                )
        artifact.deleted = True
        update = self._records.make_update(artifact, deleted=True, content=None)
        await self._core.store.write([update])
        dropping = asyncio.create_task(self._delete_bytes(artifact.sha256))
        self._delete_tasks.add(dropping)
        dropping.add_done_callback(self._delete_tasks.discard)
        await asyncio.wait([dropping], timeout=DELETE_WAIT_S)
        return artifact

    async def _delete_bytes(self, sha256: str) -> None:
        """Delete bytes that no artifact refers to any more.

        Another artifact's record may be about to be written, so recently stored bytes wait.
        """
        with suppress(ToolkitError):  # pruning deletes unreferenced bytes, too
            if not await self._core.store.delete_blob(sha256, stored_before_s=RECORD_GRACE_S):
                await asyncio.sleep(RECORD_GRACE_S)
                await self._core.store.delete_blob(sha256, stored_before_s=RECORD_GRACE_S)

    def close(self) -> None:
        """Cancel pending deletions of bytes; the next pruning does them."""
        for dropping in self._delete_tasks:
            dropping.cancel()

    async def read_content(
        self, context: RequestContext, artifact_id: str, start: int = 0, end: int | None = None
    ) -> bytes:
        """Return the bytes of an artifact, from `start` up to but not including `end`.

        The bytes are verified against the hash that they were stored under only if all are
        requested.

        Raises:
            RequestError: `NOT_FOUND` if they are lost or damaged.
        """
        entry = await self.find(context.scope, artifact_id)
        if entry.content is not None:
            return entry.content[start:end]
        artifact = entry.artifact
        data = await self._core.store.blobs.get(
            artifact.sha256, start, end, limit_s=REQUEST_LIMIT_S
        )
        is_whole = start == 0 and (end is None or end >= artifact.size_bytes)
        # A file that ends too early raises an error of its own.
        if is_whole and len(data) >= artifact.size_bytes:
            await _check_content(artifact, data)
        return data

    async def stream_content(
        self, context: RequestContext, artifact: Artifact, start: int, end: int
    ) -> AsyncGenerator[bytes]:
        """Yield the bytes of an artifact piece by piece; read each piece while sending the last.

        If all bytes are requested, the last piece comes only after the whole content matches the
        hash that it was stored under.

        Raises:
            RequestError: `NOT_FOUND` if they are lost or damaged.
            ServiceError: `UNAVAILABLE` if they end too early.
        """
        if start >= end:
            return
        step = self._core.store.blobs.chunk_bytes
        # One piece is checked as it is read.
        is_checked = end > start + step and start == 0 and end == artifact.size_bytes
        digest = hashlib.sha256() if is_checked else None

        def read_ahead(at: int) -> asyncio.Task[bytes]:
            reading = self.read_content(context, artifact.id, at, min(end, at + step))
            return asyncio.create_task(reading)

        reading = read_ahead(start)
        try:
            for at in range(start, end, step):
                upto = min(end, at + step)
                piece = await reading
                if len(piece) < upto - at:
                    raise make_missing_bytes_error()
                if upto < end:
                    reading = read_ahead(upto)
                if digest is not None:
                    await start_thread(partial(digest.update, piece))
                if upto >= end and digest is not None:
                    _compare_digest(artifact, digest.hexdigest())
                yield piece
        finally:
            reading.cancel()
            await asyncio.wait([reading])
            if not reading.cancelled():
                reading.exception()  # marks it as retrieved

    async def find_link(self, context: RequestContext, artifact: Artifact) -> str | None:
        """Make the signed URL of an artifact's bytes; None if the service sends them itself.

        Raises:
            RequestError: `NOT_FOUND` if the bytes are lost or damaged.
            ServiceError: `UNAVAILABLE`.
        """
        settings = self._core.settings
        if settings.artifact_reads != "presigned":
            return None
        entry = await self.find(context.scope, artifact.id)
        if entry.content is not None:
            return None
        # Checked here, because the storage would report an error in its own format.
        size_bytes = await self._core.store.blobs.get_size(artifact.sha256, limit_s=REQUEST_LIMIT_S)
        if size_bytes != artifact.size_bytes:
            raise make_damage_error(artifact)
        headers = {
            "Content-Type": artifact.media_type,
            "Content-Disposition": f'attachment; filename="{artifact.filename}"',
        }
        return await self._core.store.blobs.make_link(
            artifact.sha256, settings.artifact_link_s, headers
        )

    async def load_blob(self, entry: StoredArtifact) -> Blob:
        """Load an artifact with all its bytes, verified against the hash they were stored under."""
        artifact, data = entry.artifact, entry.content
        if data is None:
            data = await self._core.store.blobs.get(artifact.sha256)
        await _check_content(artifact, data)
        return Blob(data, artifact.media_type, artifact.metadata)


async def _hash_content(content: Content) -> str:
    """Return the SHA-256 of bytes, computed in a thread if they are many."""
    if len(content) <= MAX_INLINE_HASH_BYTES:
        return compute_sha256(content)
    return await start_thread(lambda: compute_sha256(content))


async def _check_content(artifact: Artifact, data: bytes) -> None:
    _compare_digest(artifact, await _hash_content(data))


def _compare_digest(artifact: Artifact, sha256: str) -> None:
    if sha256 != artifact.sha256:
        raise make_damage_error(artifact)


def make_damage_error(artifact: Artifact) -> RequestError:
    """Make the error for bytes that differ from the stored bytes."""
    return RequestError(
        ErrorCode.NOT_FOUND,
        f"The bytes of `{artifact.id}` are damaged in the store: restore them from a backup.",
    )


def make_missing_bytes_error() -> ServiceError:
    """Make the error for content that is shorter than its record states."""
    return ServiceError(ErrorCode.UNAVAILABLE, "The bytes of this artifact end too early.")
