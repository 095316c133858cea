"""Artifacts' bytes in object storage: a real S3 server, fsspec's memory, and local files."""

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

from tests.support.s3_server import ACCESS_KEY, SECRET_KEY, VARIABLES, TcpRelay
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
CONNECTIONS: Final = 10  # as many as are made at once
# Of the 30 s that a process is given to stop, and the two minutes that a call is tried for.
MAX_STOP_S: Final = 20.0


async def never() -> bool:
    """No record names them."""
    return False


async def always() -> bool:
    """A record names them."""
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
    """All that a place holds."""
    return [entry.digest for entry in place.list_entries()]


async def test_bytes_come_back_whole_and_in_ranges(blobs: BlobStore) -> None:
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


async def test_large_files_are_sent_part_by_part(blobs: BlobStore) -> None:
    """Given a file of several parts, then it is stored whole, read from where it lies."""
    with tempfile.TemporaryFile() as file:
        digest = hashlib.sha256()
        for n in range(20):
            piece = bytes([n]) * 1_000_003
            digest.update(piece)
            file.write(piece)
        size = 20 * 1_000_003
        await blobs.put(digest.hexdigest(), FileSection(file, 0, size))
    assert await blobs.get_size(digest.hexdigest()) == size
    read = await blobs.get(digest.hexdigest(), 0, None)
    assert hashlib.sha256(read).hexdigest() == digest.hexdigest()
    assert await blobs.get(digest.hexdigest(), 1_000_002, 1_000_004) == b"\0\1"


async def test_lost_bytes_are_an_error_that_says_so(blobs: BlobStore) -> None:
    """Given bytes that are not there, then no caller is told to try again."""
    for asked in (blobs.get(DIGEST, 0, None), blobs.get(DIGEST, 2, 4), blobs.get_size(DIGEST)):
        with pytest.raises(RequestError, match="lost") as lost:
            await asked
        assert lost.value.code is ErrorCode.NOT_FOUND


async def test_bytes_are_deleted_once_old_and_unreferenced(blobs: BlobStore) -> None:
    """Given young or referenced bytes, then they stay; others go, and going twice is no error."""
    await blobs.put(DIGEST, DATA)
    assert not await blobs.delete(DIGEST, HOUR_S, never)
    assert await blobs.delete(DIGEST, 0, always)
    assert await blobs.get(DIGEST, 0, None) == DATA
    assert await blobs.delete(DIGEST, 0, never)
    assert await blobs.delete(DIGEST, 0, never)
    assert list_digests(blobs.place) == []


async def test_a_record_that_is_written_meanwhile_keeps_its_bytes(blobs: BlobStore) -> None:
    """Given a record that is written while its bytes are to be deleted, then they stay."""
    await blobs.put(DIGEST, DATA)
    said = iter([False, True])

    async def look() -> bool:
        return next(said)

    await blobs.delete(DIGEST, 0, look)
    assert await blobs.get(DIGEST, 0, None) == DATA
    assert list_digests(blobs.place) == [DIGEST]


async def test_two_engines_store_the_same_bytes_while_they_are_pruned(blobs: BlobStore) -> None:
    """Given bytes that two store again while a third deletes them, then they are there at the end.

    Deletions are of old bytes: what an engine was told is stored has just been written.
    """
    for _ in range(5):
        await blobs.put(DIGEST, DATA)
        held = await asyncio.to_thread(blobs.place.hold, DIGEST, 0.0)
        assert held is not None
        storing = [asyncio.create_task(blobs.put(DIGEST, DATA)) for _ in range(2)]
        await asyncio.to_thread(held.delete)
        await asyncio.gather(*storing)
        assert await blobs.get(DIGEST, 0, None) == DATA


async def test_bytes_that_were_deleted_before_the_look_are_stored_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given a deletion that ends between an upload and its look for one, then it uploads again."""
    store = BlobStore(ObjectStorage("memory://between"), synced=False)
    await store.put(DIGEST, DATA)
    held = await asyncio.to_thread(store.place.hold, DIGEST, 0.0)
    assert held is not None
    look, ends = MemoryFileSystem.ls, [held.delete]

    def end_deletion_first(*args: Any, **options: Any) -> Any:
        if ends:
            ends.pop()()
        return look(*args, **options)

    monkeypatch.setattr(MemoryFileSystem, "ls", end_deletion_first)
    await store.put(DIGEST, DATA)
    assert not ends
    assert await store.get(DIGEST, 0, None) == DATA
    await store.close()


async def test_bytes_that_changed_are_not_stored(s3_url: str, s3_server: str) -> None:
    """Given bytes that are not those of the hash, then nothing is there under it."""
    place = ObjectStorage(s3_url, endpoint_url=s3_server)
    store = BlobStore(place, synced=False)
    for wrong in (b"other", b"x" * 9_000_000):
        with pytest.raises(ServiceError, match="changed"):
            await store.put(DIGEST, wrong)
        assert list_digests(place) == []
    await store.close()


async def test_who_stores_waits_for_who_deletes(
    s3_url: str, s3_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a deletion that does not end, then storing is refused; an abandoned one is passed."""
    monkeypatch.setattr(object_storage, "MARKER_WAIT_S", 0.0)
    store = BlobStore(ObjectStorage(s3_url, endpoint_url=s3_server), synced=False)
    await store.put(DIGEST, DATA)
    held = await asyncio.to_thread(store.place.hold, DIGEST, 0.0)
    assert held is not None
    with pytest.raises(ServiceError, match="being deleted") as refused:
        await store.put(DIGEST, DATA)
    assert refused.value.retry_after
    assert list_digests(store.place) == [DIGEST, None]  # a marker is no artifact
    monkeypatch.setattr(object_storage, "ABANDONED_MARKER_S", -1.0)
    await store.put(DIGEST, DATA)
    monkeypatch.setattr(object_storage, "MAX_DELETION_S", -1.0)
    with pytest.raises(ServiceError, match="took too long"):
        await asyncio.to_thread(held.delete)
    assert await store.get(DIGEST, 0, 4) == DATA[:4]
    await store.close()


async def test_storage_that_is_away_is_unavailable_and_then_works(
    s3_url: str, s3_server: str
) -> None:
    """Given a network that is cut, then the error says to try again, and later it works."""
    with TcpRelay(s3_server) as relay:
        store = BlobStore(ObjectStorage(s3_url, endpoint_url=relay.url), synced=False)
        await store.put(DIGEST, DATA)
        relay.cut()
        for asked in (store.get(DIGEST, 0, None), store.put(DIGEST, DATA), store.get_size(DIGEST)):
            with pytest.raises(ServiceError) as away:
                await asked
            assert away.value.code is ErrorCode.UNAVAILABLE
            assert away.value.retry_after
        mending = threading.Timer(0.1, relay.mend)
        mending.start()
        read = None
        while read is None:
            with contextlib.suppress(ServiceError):
                read = await store.get(DIGEST, 0, None)
        assert read == DATA
        mending.join()
        relay.break_connections()  # those that are kept: noticed by the next request, and repeated
        assert await store.get(DIGEST, 0, None) == DATA
        await store.close()


async def test_a_bucket_that_is_not_there_is_no_lost_artifact(s3_url: str, s3_server: str) -> None:
    """Given no bucket, then nothing says that artifacts are lost, and none is made."""
    store = BlobStore(ObjectStorage("s3://nowhere-1/a", endpoint_url=s3_server), synced=False)
    for asked in (store.put(DIGEST, DATA), store.get(DIGEST, 0, None)):
        with pytest.raises(ServiceError, match="NoSuchBucket") as refused:
            await asked
        assert refused.value.code is ErrorCode.UNAVAILABLE
        assert refused.value.retry_after is None
    with pytest.raises(ServiceError, match="NoSuchBucket"):
        list_digests(store.place)
    await store.close()


async def test_no_error_and_no_log_line_names_a_key(
    s3_url: str, s3_server: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Given failures of each kind, then neither their texts nor the log hold credentials."""
    caplog.set_level(logging.INFO)
    told: list[Any] = []
    with TcpRelay(s3_server) as relay:
        store = BlobStore(ObjectStorage(s3_url, endpoint_url=relay.url), synced=False)
        await store.put(DIGEST, DATA)
        assert ACCESS_KEY in await store.make_link(DIGEST, 60, {})  # which is why none is logged
        relay.cut()
        for asked in (store.get(DIGEST, 0, None), store.put(DIGEST, DATA)):
            with pytest.raises(ServiceError) as failed:
                await asked
            error: BaseException | None = failed.value
            while error is not None:
                told += [repr(error), str(error)]
                error = error.__cause__
        await store.close()
    for secret in (ACCESS_KEY, SECRET_KEY, "Signature"):
        assert secret not in "".join(told)
        assert secret not in caplog.text


@pytest.mark.parametrize(
    "given",
    [
        {"artifact_url": "s3://key:hidden-word@bucket/a"},
        {"artifact_url": "s3://bucket/a?secret=hidden-word"},
        {"artifact_endpoint_url": "http://key:hidden-word@127.0.0.1:9000"},
        {"artifact_endpoint_url": "minio"},
    ],
)
def test_settings_refuse_credentials_in_urls(given: dict[str, str]) -> None:
    """Given a URL with a password in it, then it is refused, and not repeated."""
    with pytest.raises(SettingsError) as refused:
        Settings(**given)
    assert "hidden-word" not in f"{refused.value!r}{refused.value}"


async def test_places_that_nothing_knows_are_refused_in_words(tmp_path: Path) -> None:
    """Given a URL of no known kind, or a place that signs nothing, then the error says so."""
    store = BlobStore(open_place(tmp_path, "nosuch://x/y"), synced=False)
    with pytest.raises(ServiceError, match="does not know the protocol"):
        await store.put(DIGEST, DATA)
    await store.close()
    for url in (None, "memory://x/y"):
        store = BlobStore(open_place(tmp_path, url), synced=False)
        with pytest.raises(RequestError, match="signs URLs"):
            await store.make_link(DIGEST, 60, {})
        await store.close()


# Stops as soon as its input does, in the middle of uploads.
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


def test_storage_that_hangs_keeps_no_engine_from_stopping(tmp_path: Path) -> None:
    """Given many calls of storage that says nothing, when an engine stops, then it waits for none.

    It is its process that ends: no thread that hangs is waited for either.
    """
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(tmp_path / "engine"), url],
            stdin=subprocess.PIPE,
            env={**os.environ, **VARIABLES},
        )
        assert process.stdin is not None
        with contextlib.ExitStack() as heard:
            for _ in range(CONNECTIONS):
                heard.enter_context(silent.accept()[0])
            watch = Watch()
            process.stdin.close()
            try:
                assert process.wait(PATIENCE_S) == 0
            finally:
                process.kill()
            assert watch.measure_elapsed_s() < MAX_STOP_S
