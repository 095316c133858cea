"""Artifacts in object storage: a real S3 server, fsspec's memory and local files."""

import asyncio
import contextlib
import hashlib
import logging
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from tests.support.s3_server import ACCESS_KEY, SECRET_KEY, VARIABLES, S3Link
from tests.support.timing import PATIENCE_S, Watch
from toolkit.contract.errors import ErrorCode, RequestError, ServiceError
from toolkit.settings import Settings, SettingsError
from toolkit.store import FileSection
from toolkit.store.blob_places import object_storage
from toolkit.store.blob_places.object_storage import ObjectStorage
from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.blobs import BlobStore, open_place

DATA = b"0123456789" * 1_000
DIGEST = hashlib.sha256(DATA).hexdigest()
HOUR_S = 3_600.0
CONNECTIONS: Final = 10  # number of concurrent uploads
# A process has 30 s to stop, and a call is retried for two minutes.
MAX_STOP_S: Final = 20.0


async def is_unreferenced() -> bool:
    """Return that no record names the bytes."""
    return False


async def is_referenced() -> bool:
    """Return that a record names the bytes."""
    return True


@pytest.fixture(params=["s3", "memory", "file", "folder"])
async def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BlobStore]:
    """An empty store of bytes in each kind of place."""
    endpoint_url = None
    match request.param:
        case "s3":
            url = request.getfixturevalue("s3_url")
            endpoint_url = request.getfixturevalue("s3_server")
        case "memory":
            url = f"memory://{tmp_path.name}/artifacts"
        case "file":
            url = (tmp_path / "a b").as_uri()
        case _:
            url = None
    store = BlobStore(open_place(tmp_path, url, endpoint_url=endpoint_url), synced=False)
    yield store
    await store.close()


def list_digests(place: BlobPlace) -> list[str | None]:
    """List the digests in a place."""
    return [entry.digest for entry in place.list_entries()]


async def test_reads_bytes_whole_and_in_ranges(blobs: BlobStore) -> None:
    """Given bytes stored twice, then they are there once, and any range of them can be read."""
    await blobs.put(DIGEST, DATA)
    await blobs.put(DIGEST, DATA)
    assert await blobs.get(DIGEST, 0, None) == DATA
    assert await blobs.get(DIGEST, 3, 8) == DATA[3:8]
    assert await blobs.get(DIGEST, 9_990, None) == DATA[9_990:]
    assert await blobs.get(DIGEST, 5, 5) == b""
    assert await blobs.get_size(DIGEST) == len(DATA)
    (entry,) = blobs.place.list_entries()
    assert (entry.digest, entry.size_bytes) == (DIGEST, len(DATA))
    assert entry.age_s is not None
    assert abs(entry.age_s) < HOUR_S


async def test_stores_a_large_file_in_parts(blobs: BlobStore) -> None:
    """Given a file of several parts, then it is stored completely."""
    data = b"".join(bytes([n]) * 1_000_003 for n in range(20))
    digest = hashlib.sha256(data).hexdigest()
    with tempfile.TemporaryFile() as file:
        file.write(data)
        await blobs.put(digest, FileSection(file, 0, len(data)))
    assert await blobs.get_size(digest) == len(data)
    assert hashlib.sha256(await blobs.get(digest, 0, None)).hexdigest() == digest
    assert await blobs.get(digest, 1_000_002, 1_000_004) == b"\0\1"


async def test_reports_lost_bytes(blobs: BlobStore) -> None:
    """Given bytes that are not there, then reads fail with NOT_FOUND."""
    for read in (blobs.get(DIGEST, 0, None), blobs.get(DIGEST, 2, 4), blobs.get_size(DIGEST)):
        with pytest.raises(RequestError, match="lost") as lost:
            await read
        assert lost.value.code is ErrorCode.NOT_FOUND


async def test_deletes_only_old_unreferenced_bytes(blobs: BlobStore) -> None:
    """Given bytes, then a deletion needs old bytes that no record names, and may be repeated."""
    await blobs.put(DIGEST, DATA)
    assert not await blobs.delete(DIGEST, HOUR_S, is_unreferenced)
    assert await blobs.delete(DIGEST, 0, is_referenced)
    assert await blobs.get(DIGEST, 0, None) == DATA
    assert await blobs.delete(DIGEST, 0, is_unreferenced)
    assert await blobs.delete(DIGEST, 0, is_unreferenced)
    assert list_digests(blobs.place) == []


async def test_keeps_bytes_that_a_new_record_names(blobs: BlobStore) -> None:
    """Given a record that is written during a deletion, then its bytes stay."""
    await blobs.put(DIGEST, DATA)
    answers = iter([False, True])

    async def is_named() -> bool:
        return next(answers)

    await blobs.delete(DIGEST, 0, is_named)
    assert await blobs.get(DIGEST, 0, None) == DATA
    assert list_digests(blobs.place) == [DIGEST]


async def test_stores_bytes_while_they_are_deleted(blobs: BlobStore) -> None:
    """Given bytes that two engines store while a third deletes them, then they are there.

    A deletion is of old bytes; an acknowledged upload has just written them.
    """
    for _ in range(5):
        await blobs.put(DIGEST, DATA)
        deletion = await asyncio.to_thread(blobs.place.hold, DIGEST, 0.0)
        assert deletion is not None
        storing = [asyncio.create_task(blobs.put(DIGEST, DATA)) for _ in range(2)]
        await asyncio.to_thread(deletion.delete)
        await asyncio.gather(*storing)
        assert await blobs.get(DIGEST, 0, None) == DATA


async def test_uploads_again_after_a_concurrent_deletion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given a deletion between an upload and its check, then the engine uploads again."""
    store = BlobStore(ObjectStorage("memory://between"), synced=False)
    await store.put(DIGEST, DATA)
    deletion = await asyncio.to_thread(store.place.hold, DIGEST, 0.0)
    assert deletion is not None
    look, ends = MemoryFileSystem.ls, [deletion.delete]

    def end_deletion_first(*args: Any, **options: Any) -> Any:
        if ends:
            ends.pop()()
        return look(*args, **options)

    monkeypatch.setattr(MemoryFileSystem, "ls", end_deletion_first)
    await store.put(DIGEST, DATA)
    assert not ends
    assert await store.get(DIGEST, 0, None) == DATA
    await store.close()


async def test_refuses_bytes_that_do_not_match_the_hash(s3_url: str, s3_server: str) -> None:
    """Given bytes with another hash, then they are refused, and none are stored."""
    store = BlobStore(ObjectStorage(s3_url, endpoint_url=s3_server), synced=False)
    for wrong in (b"other", b"x" * 9_000_000):
        with pytest.raises(ServiceError, match="changed"):
            await store.put(DIGEST, wrong)
        assert list_digests(store.place) == []
    await store.close()


async def test_an_upload_waits_for_a_deletion(
    s3_url: str, s3_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a deletion that does not end, then uploads are refused until it counts as abandoned."""
    monkeypatch.setattr(object_storage, "MARKER_WAIT_S", 0.0)
    store = BlobStore(ObjectStorage(s3_url, endpoint_url=s3_server), synced=False)
    await store.put(DIGEST, DATA)
    deletion = await asyncio.to_thread(store.place.hold, DIGEST, 0.0)
    assert deletion is not None
    with pytest.raises(ServiceError, match="being deleted") as refused:
        await store.put(DIGEST, DATA)
    assert refused.value.retry_after
    assert list_digests(store.place) == [DIGEST, None]  # None is the marker
    monkeypatch.setattr(object_storage, "ABANDONED_MARKER_S", -1.0)
    await store.put(DIGEST, DATA)
    monkeypatch.setattr(object_storage, "MAX_DELETION_S", -1.0)
    with pytest.raises(ServiceError, match="took too long"):
        await asyncio.to_thread(deletion.delete)
    assert await store.get(DIGEST, 0, 4) == DATA[:4]
    await store.close()


async def test_recovers_from_an_outage_of_storage(s3_url: str, s3_server: str) -> None:
    """Given a network that is cut, then errors say to try again, and later calls work."""
    with S3Link(s3_server) as relay:
        store = BlobStore(ObjectStorage(s3_url, endpoint_url=relay.url), synced=False)
        await store.put(DIGEST, DATA)
        relay.cut()
        for call in (store.get(DIGEST, 0, None), store.put(DIGEST, DATA), store.get_size(DIGEST)):
            with pytest.raises(ServiceError) as refused:
                await call
            assert refused.value.code is ErrorCode.UNAVAILABLE
            assert refused.value.retry_after
        mending = threading.Timer(0.1, relay.heal)
        mending.start()
        read = None
        while read is None:
            with contextlib.suppress(ServiceError):
                read = await store.get(DIGEST, 0, None)
        assert read == DATA
        mending.join()
        relay.drop()  # the next request notices, and repeats itself
        assert await store.get(DIGEST, 0, None) == DATA
        await store.close()


async def test_a_missing_bucket_is_not_a_lost_artifact(s3_url: str, s3_server: str) -> None:
    """Given no bucket, then errors name it, and no bucket is created."""
    store = BlobStore(ObjectStorage("s3://nowhere-1/a", endpoint_url=s3_server), synced=False)
    for call in (store.put(DIGEST, DATA), store.get(DIGEST, 0, None)):
        with pytest.raises(ServiceError, match="NoSuchBucket") as refused:
            await call
        assert refused.value.code is ErrorCode.UNAVAILABLE
        assert refused.value.retry_after is None
    with pytest.raises(ServiceError, match="NoSuchBucket"):
        list_digests(store.place)
    await store.close()


async def test_errors_and_logs_have_no_credentials(
    s3_url: str, s3_server: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Given failures of each kind, then neither their texts nor the log have credentials."""
    caplog.set_level(logging.INFO)
    texts: list[str] = []
    with S3Link(s3_server) as relay:
        store = BlobStore(ObjectStorage(s3_url, endpoint_url=relay.url), synced=False)
        await store.put(DIGEST, DATA)
        assert ACCESS_KEY in await store.make_link(DIGEST, 60, {})  # so no link may be logged
        relay.cut()
        for call in (store.get(DIGEST, 0, None), store.put(DIGEST, DATA)):
            with pytest.raises(ServiceError) as failed:
                await call
            error: BaseException | None = failed.value
            while error is not None:
                texts += [repr(error), str(error)]
                error = error.__cause__
        await store.close()
    for secret in (ACCESS_KEY, SECRET_KEY, "Signature"):
        assert secret not in "".join(texts)
        assert secret not in caplog.text


@pytest.mark.parametrize(
    "options",
    [
        {"artifact_url": "s3://key:hidden-word@bucket/a"},
        {"artifact_url": "s3://bucket/a?secret=hidden-word"},
        {"artifact_endpoint_url": "http://key:hidden-word@127.0.0.1:9000"},
        {"artifact_endpoint_url": "minio"},
    ],
)
def test_settings_refuse_credentials_in_urls(options: dict[str, str]) -> None:
    """Given a URL with a password in it, then it is refused, and the error has no password."""
    with pytest.raises(SettingsError) as refused:
        Settings(**options)
    assert "hidden-word" not in f"{refused.value!r}{refused.value}"


async def test_reports_an_unknown_place_and_a_place_without_links(tmp_path: Path) -> None:
    """Given a URL of an unknown kind, or a place that signs no URLs, then the error says so."""
    store = BlobStore(open_place(tmp_path, "nosuch://x/y"), synced=False)
    with pytest.raises(ServiceError, match="does not know the protocol"):
        await store.put(DIGEST, DATA)
    await store.close()
    for url in (None, "memory://x/y"):
        store = BlobStore(open_place(tmp_path, url), synced=False)
        with pytest.raises(RequestError, match="signs URLs"):
            await store.make_link(DIGEST, 60, {})
        await store.close()


# Stops when its input ends, during uploads.
_PROGRAM = """
import sys
import threading
from pathlib import Path

from toolkit import Client
from toolkit.settings import Settings

client = Client.local(settings=Settings(data_dir=Path(sys.argv[1]), sandbox=True,
    artifact_url="s3://tests-1/a", artifact_endpoint_url=sys.argv[2]))
for n in range(40):
    data = bytes([n]) * 300_000
    threading.Thread(target=client.artifacts.upload, args=(data,), daemon=True).start()
sys.stdin.read()
client.close()
"""


def test_an_engine_stops_while_storage_hangs(tmp_path: Path) -> None:
    """Given many uploads to storage that hangs, when an engine stops, then its process ends."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(tmp_path / "engine"), url],
            stdin=subprocess.PIPE,
            env={**os.environ, **VARIABLES},
        )
        assert process.stdin is not None
        with contextlib.ExitStack() as connections:
            for _ in range(CONNECTIONS):
                connections.enter_context(silent.accept()[0])
            watch = Watch()
            process.stdin.close()
            try:
                assert process.wait(PATIENCE_S) == 0
            finally:
                process.kill()
            assert watch.measure_elapsed_s() < MAX_STOP_S
