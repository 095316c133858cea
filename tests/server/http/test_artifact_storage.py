"""Artifacts in object storage over HTTP: streamed, or read from there by signed URLs."""

import asyncio
import hashlib
import logging
import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from s3fs import S3FileSystem

from tests.conftest import Server
from tests.contract.conftest import read_key, sign_up_client
from tests.server.conftest import call_app, open_wire
from tests.support.network_link import NetworkLink
from tests.support.s3_server import ACCESS_KEY, BUCKET, TcpRelay
from tests.support.timing import PATIENCE_S, wait_until, wait_until_async, yield_turns
from toolkit import Client
from toolkit.contract.errors import ErrorCode, RequestError, ServiceError
from toolkit.sandbox import Faults
from toolkit.server import create_app
from toolkit.settings import Settings
from toolkit.store.blob_places.object_storage import READ_BYTES

DATA = os.urandom(2**20) * 12 + b"end"
WAITING = 20
# What is promised is ten seconds; the machine may be busy, and an upload is received first.
MAX_ANSWER_S = 20.0
S3Place = tuple[Server, Client, TcpRelay]


@pytest.fixture
def relay(s3_server: str) -> Iterator[TcpRelay]:
    """The way from an engine, and from who follows its links, to the S3 server."""
    with TcpRelay(s3_server) as relay:
        yield relay


@pytest.fixture(params=["proxied", "presigned"])
def place(
    request: pytest.FixtureRequest, settings: Settings, s3_url: str, relay: TcpRelay
) -> Iterator[S3Place]:
    """A server whose artifacts are at the S3 server, and a client of it."""
    update = {"artifact_url": s3_url, "artifact_endpoint_url": relay.url}
    server = Server(settings.model_copy(update={**update, "artifact_reads": request.param}))
    client = sign_up_client(server.url)
    yield server, client, relay
    client.close()
    server.close()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file that takes several parts."""
    path = tmp_path / "leaves.bin"
    path.write_bytes(DATA)
    return path


def find_object(relay: TcpRelay, s3_url: str, sha256: str) -> tuple[S3FileSystem, str]:
    """An artifact's object: by whom else may write there, and where it is."""
    files = S3FileSystem(endpoint_url=relay.url, skip_instance_cache=True, use_listings_cache=False)
    return files, f"{s3_url}/{sha256[:2]}/{sha256[2:]}"


def test_artifacts_go_there_and_come_back(
    place: S3Place, source: Path, tmp_path: Path, s3_url: str
) -> None:
    """Given a file of several parts, then it is there whole, and is read whole and in ranges."""
    _, client, relay = place
    kept = client.artifacts.upload(source)
    assert kept.sha256 == hashlib.sha256(DATA).hexdigest()
    files, stored = find_object(relay, s3_url, kept.sha256)
    assert files.cat_file(stored) == DATA
    assert any("uploadId" in line for line in relay.requests)
    assert kept.content() == DATA
    assert kept.save(tmp_path / "saved.bin").read_bytes() == DATA
    assert client.artifacts.content(client.artifacts.upload(b"few").id) == b"few"


def test_ranges_are_answered_as_from_a_disk(place: S3Place, source: Path) -> None:
    """Given a range, then these bytes come with 206, whoever sends them; past the end 416."""
    _, client, _ = place
    kept = client.artifacts.upload(source)
    url = f"{client.access.base_url}/artifacts/{kept.id}/content"
    headers = {"Authorization": f"Bearer {read_key(client)}"}
    for wanted, data in (("bytes=5-9", DATA[5:10]), ("bytes=-3", b"end")):
        answer = httpx.get(url, headers={**headers, "Range": wanted}, follow_redirects=True)
        assert (answer.status_code, answer.content) == (206, data)
    past = httpx.get(url, headers={**headers, "Range": f"bytes={len(DATA)}-"})
    assert past.status_code == 416
    whole = httpx.get(url, headers=headers, follow_redirects=True)
    assert whole.headers["content-type"] == kept.media_type
    assert whole.headers["content-disposition"] == f'attachment; filename="{kept.filename}"'


async def test_a_part_is_read_ahead(settings: Settings, s3_url: str, relay: TcpRelay) -> None:
    """Given a caller that takes one part, then the next one is read meanwhile, and no other."""
    update = {"artifact_url": s3_url, "artifact_endpoint_url": relay.url}
    async with open_wire(settings.model_copy(update=update)) as wire:
        made = await wire.send("POST", "/v1/artifacts", files={"file": ("leaves.bin", DATA)})
        before, going_on, taken = len(relay.requests), asyncio.Event(), bytearray()

        async def take(message: Mapping[str, Any]) -> None:
            taken.extend(message.get("body", b""))
            if taken:
                await going_on.wait()

        def count_reads() -> int:
            return sum(line.startswith("GET ") for line in relay.requests[before:])

        path = f"/v1/artifacts/{made.json()['id']}/content"
        taking = asyncio.create_task(call_app(create_app(wire.engine), path, wire.headers, take))
        await wait_until_async(lambda: count_reads() >= 2)
        await yield_turns(100)
        assert (count_reads(), len(taken)) == (2, READ_BYTES)
        going_on.set()
        await taking
    assert bytes(taken) == DATA


@pytest.mark.parametrize("place", ["presigned"], indirect=True)
def test_no_byte_of_a_presigned_read_goes_through_the_engine(
    place: S3Place, source: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Given presigned reads, then a server answers with a link, and its client follows it alone."""
    caplog.set_level(logging.INFO)
    server, uploader, relay = place
    kept = uploader.artifacts.upload(source)
    key = read_key(uploader)
    with TcpRelay(server.url) as counted, Client(base_url=counted.url, api_key=key) as client:
        assert client.artifacts.content(kept.id) == DATA
        assert counted.received < 4_096
        assert relay.received > len(DATA)
        answer = httpx.get(
            f"{counted.url}/v1/artifacts/{kept.id}/content",
            headers={"Authorization": f"Bearer {key}"},
        )
    assert (answer.status_code, answer.content) == (307, b"")
    assert answer.headers["location"].startswith(f"{relay.url}/{BUCKET}/")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-request-id"]
    assert not any(key in sent for sent in relay.heads)
    assert any("X-Amz-Signature" in sent for sent in relay.heads)
    # The links that were followed are as good as keys: httpx logs addresses, without these.
    assert BUCKET in caplog.text
    assert ACCESS_KEY not in caplog.text
    assert "X-Amz-Signature" not in caplog.text


def test_lost_and_damaged_objects_are_told_apart_from_storage_that_is_away(
    place: S3Place, source: Path, s3_url: str
) -> None:
    """Given bytes that changed, or are gone, or cannot be reached, then the error says which."""
    server, uploader, relay = place
    kept = uploader.artifacts.upload(source)
    files, stored = find_object(relay, s3_url, kept.sha256)
    with Client(base_url=server.url, api_key=read_key(uploader), max_retries=0) as client:
        for wrong in (DATA[:-1] + b"!", DATA[:-1]):
            files.pipe_file(stored, wrong)
            with pytest.raises((RequestError, ServiceError)):
                client.artifacts.content(kept.id)
        files.rm_file(stored)
        with pytest.raises(RequestError, match="lost") as lost:
            client.artifacts.content(kept.id)
        assert lost.value.code is ErrorCode.NOT_FOUND
        relay.cut()
        with pytest.raises(ServiceError) as away:
            client.artifacts.content(kept.id)
        assert away.value.code is ErrorCode.UNAVAILABLE
        assert away.value.retry_after
        relay.mend()


def test_a_small_damaged_object_is_refused(place: S3Place, s3_url: str) -> None:
    """Given bytes of one piece that changed in the storage, then they are not handed out."""
    _, client, relay = place
    data = b"leaf" * 5_000
    kept = client.artifacts.upload(data)
    assert client.artifacts.content(kept.id) == data
    files, stored = find_object(relay, s3_url, kept.sha256)
    files.pipe_file(stored, b"dust" * 5_000)
    with pytest.raises((RequestError, ServiceError), match=r"damaged|bytes that differ"):
        client.artifacts.content(kept.id)


def test_a_result_waits_for_its_storage(
    settings: Settings, s3_url: str, relay: TcpRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given storage that is away when a paid call has ended, then it is not called again."""
    monkeypatch.setattr("toolkit.engine.services.artifacts.RESULT_RETRY_S", 0.01)
    faults = Faults()
    update = {"artifact_url": s3_url, "artifact_endpoint_url": relay.url}
    with Client.local(settings=settings.model_copy(update=update), faults=faults) as client:
        relay.cut()
        run = client.runs.create("image.generate", {"prompt": "a leaf"})
        wait_until(lambda: len(relay.refused) > 4)  # more than one call's own tries
        relay.mend()
        assert run.wait().status == "completed"
        assert len(run.record.attempts) == 1
        assert client.artifacts.content(run.artifact_id).startswith(b"\x89PNG")


def test_storage_that_hangs_is_answered_with_503_in_ten_seconds(
    settings: Settings, s3_url: str, s3_server: str, tmp_path: Path
) -> None:
    """Given storage that says nothing, then readers and uploads are told when to ask again.

    Whether bytes are proxied or links are given out. More of them wait than calls of storage may be
    under way at once. Once it answers, so does the service.
    """
    link = NetworkLink(int(s3_server.rpartition(":")[2]))
    endpoint = f"http://127.0.0.1:{link.port}"

    def serve(reads: str) -> tuple[Server, Client]:
        update = {
            "data_dir": tmp_path / reads, "artifact_reads": reads,
            "artifact_url": f"{s3_url}/{reads}", "artifact_endpoint_url": endpoint,
        }  # fmt: skip
        server = Server(settings.model_copy(update=update))
        return server, sign_up_client(server.url)

    served = [serve(reads) for reads in ("proxied", "presigned")]
    contents = [
        f"{server.url}/v1/artifacts/{client.artifacts.upload(DATA).id}/content"
        for server, client in served
    ]

    def ask(number: int) -> tuple[int, str | None, float]:
        server, client = served[number % 2]
        headers = {"Authorization": f"Bearer {read_key(client)}"}
        began = time.monotonic()
        with httpx.Client(headers=headers, timeout=PATIENCE_S, trust_env=False) as http:
            if number % 3 == 0:
                data = {"file": ("new.bin", os.urandom(2**14) + DATA * (number // 6 % 2))}
                answer = http.post(f"{server.url}/v1/artifacts", files=data)
            else:
                part = {"Range": "bytes=5-9"} if number % 3 == 1 else {}
                answer = http.get(contents[number % 2], headers=part)
        took_s = time.monotonic() - began
        return answer.status_code, answer.headers.get("retry-after"), took_s

    try:
        link.hold()
        with ThreadPoolExecutor(2 * WAITING) as threads:
            answers = list(threads.map(ask, range(2 * WAITING)))
        assert {status for status, _, _ in answers} == {503}
        assert all(after is not None and int(after) >= 1 for _, after, _ in answers)
        assert max(took_s for _, _, took_s in answers) < MAX_ANSWER_S
        link.heal()
        wait_until(lambda: ask(4)[0] == 206, "storage is read again")
        wait_until(lambda: ask(1)[0] == 307, "storage is linked to again")
    finally:
        link.close()
        for server, client in served:
            client.close()
            server.close()
