"""Artifacts in object storage over HTTP: streamed, or read by signed URLs."""

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
from tests.support.s3_server import ACCESS_KEY, BUCKET, S3Link
from tests.support.timing import PATIENCE_S, wait_until, wait_until_async, yield_turns
from toolkit import Client
from toolkit.contract.errors import ErrorCode, RequestError, ServiceError
from toolkit.sandbox import Faults
from toolkit.server import create_app
from toolkit.settings import Settings
from toolkit.store.blob_places.object_storage import READ_BYTES

DATA = os.urandom(2**20) * 12 + b"end"
WAITING = 20
# The promise is ten seconds; the machine may be busy, and an upload is received first.
MAX_ANSWER_S = 20.0
S3Place = tuple[Server, Client, S3Link]


@pytest.fixture
def relay(s3_server: str) -> Iterator[S3Link]:
    """A relay to the S3 server, which counts and cuts connections."""
    with S3Link(s3_server) as relay:
        yield relay


@pytest.fixture(params=["proxied", "presigned"])
def place(
    request: pytest.FixtureRequest, settings: Settings, s3_url: str, relay: S3Link
) -> Iterator[S3Place]:
    """A server that stores artifacts in S3, its client, and the relay to S3."""
    update = {"artifact_url": s3_url, "artifact_endpoint_url": relay.url}
    server = Server(settings.model_copy(update={**update, "artifact_reads": request.param}))
    client = sign_up_client(server.url)
    yield server, client, relay
    client.close()
    server.close()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file of several parts."""
    path = tmp_path / "leaves.bin"
    path.write_bytes(DATA)
    return path


def find_object(relay: S3Link, s3_url: str, sha256: str) -> tuple[S3FileSystem, str]:
    """Return a file system that reaches the bucket, and the path of an artifact's object."""
    files = S3FileSystem(endpoint_url=relay.url, skip_instance_cache=True, use_listings_cache=False)
    return files, f"{s3_url}/{sha256[:2]}/{sha256[2:]}"


def test_stores_and_reads_artifacts(
    place: S3Place, source: Path, tmp_path: Path, s3_url: str
) -> None:
    """Given a file of several parts, then S3 has all of it, and it is read whole."""
    _, client, relay = place
    artifact = client.artifacts.upload(source)
    assert artifact.sha256 == hashlib.sha256(DATA).hexdigest()
    files, object_path = find_object(relay, s3_url, artifact.sha256)
    assert files.cat_file(object_path) == DATA
    assert any("uploadId" in line for line in relay.heads)
    assert artifact.content() == DATA
    assert artifact.save(tmp_path / "saved.bin").read_bytes() == DATA
    assert client.artifacts.content(client.artifacts.upload(b"few").id) == b"few"


def test_serves_ranges_and_headers(place: S3Place, source: Path) -> None:
    """Given a range, then its bytes come with 206; a range after the end gets 416."""
    _, client, _ = place
    artifact = client.artifacts.upload(source)
    url = f"{client.access.base_url}/artifacts/{artifact.id}/content"
    headers = {"Authorization": f"Bearer {read_key(client)}"}
    for byte_range, data in (("bytes=5-9", DATA[5:10]), ("bytes=-3", b"end")):
        answer = httpx.get(url, headers={**headers, "Range": byte_range}, follow_redirects=True)
        assert (answer.status_code, answer.content) == (206, data)
    past = httpx.get(url, headers={**headers, "Range": f"bytes={len(DATA)}-"})
    assert past.status_code == 416
    answer = httpx.get(url, headers=headers, follow_redirects=True)
    assert answer.headers["content-type"] == artifact.media_type
    assert answer.headers["content-disposition"] == f'attachment; filename="{artifact.filename}"'


async def test_reads_one_part_ahead(settings: Settings, s3_url: str, relay: S3Link) -> None:
    """Given a caller that takes one part, then only the next part is read meanwhile."""
    update = {"artifact_url": s3_url, "artifact_endpoint_url": relay.url}
    async with open_wire(settings.model_copy(update=update)) as wire:
        upload = await wire.send("POST", "/v1/artifacts", files={"file": ("leaves.bin", DATA)})
        before, resume, received = len(relay.heads), asyncio.Event(), bytearray()

        async def receive(message: Mapping[str, Any]) -> None:
            received.extend(message.get("body", b""))
            if received:
                await resume.wait()

        def count_reads() -> int:
            return sum(line.startswith("GET ") for line in relay.heads[before:])

        path = f"/v1/artifacts/{upload.json()['id']}/content"
        reading = asyncio.create_task(
            call_app(create_app(wire.engine), path, wire.headers, receive)
        )
        await wait_until_async(lambda: count_reads() >= 2)
        await yield_turns(100)
        assert (count_reads(), len(received)) == (2, READ_BYTES)
        resume.set()
        await reading
    assert bytes(received) == DATA


@pytest.mark.parametrize("place", ["presigned"], indirect=True)
def test_presigned_read_bypasses_the_engine(
    place: S3Place, source: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Given presigned reads, then the server answers with a link, which the client follows."""
    caplog.set_level(logging.INFO)
    server, uploader, relay = place
    artifact = uploader.artifacts.upload(source)
    key = read_key(uploader)
    with S3Link(server.url) as counted, Client(base_url=counted.url, api_key=key) as client:
        assert client.artifacts.content(artifact.id) == DATA
        assert counted.counts["back"] < 4_096
        assert relay.counts["back"] > len(DATA)
        answer = httpx.get(
            f"{counted.url}/v1/artifacts/{artifact.id}/content",
            headers={"Authorization": f"Bearer {key}"},
        )
    assert (answer.status_code, answer.content) == (307, b"")
    assert answer.headers["location"].startswith(f"{relay.url}/{BUCKET}/")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-request-id"]
    assert not any(key in head for head in relay.heads)
    assert any("X-Amz-Signature" in head for head in relay.heads)
    # A link is as good as a key, and httpx logs addresses.
    assert BUCKET in caplog.text
    assert ACCESS_KEY not in caplog.text
    assert "X-Amz-Signature" not in caplog.text


def test_distinguishes_damaged_lost_and_unreachable_objects(
    place: S3Place, source: Path, s3_url: str
) -> None:
    """Given damaged, deleted or unreachable bytes, then the error says which."""
    server, uploader, relay = place
    artifact = uploader.artifacts.upload(source)
    files, object_path = find_object(relay, s3_url, artifact.sha256)
    with Client(base_url=server.url, api_key=read_key(uploader), max_retries=0) as client:
        for damaged in (DATA[:-1] + b"!", DATA[:-1]):
            files.pipe_file(object_path, damaged)
            with pytest.raises((RequestError, ServiceError)):
                client.artifacts.content(artifact.id)
        small = client.artifacts.upload(b"leaf" * 5_000)
        files.pipe_file(find_object(relay, s3_url, small.sha256)[1], b"dust" * 5_000)
        with pytest.raises((RequestError, ServiceError), match=r"damaged|bytes that differ"):
            client.artifacts.content(small.id)
        files.rm_file(object_path)
        with pytest.raises(RequestError, match="lost") as lost:
            client.artifacts.content(artifact.id)
        assert lost.value.code is ErrorCode.NOT_FOUND
        relay.cut()
        with pytest.raises(ServiceError) as away:
            client.artifacts.content(artifact.id)
        assert away.value.code is ErrorCode.UNAVAILABLE
        assert away.value.retry_after
        relay.heal()


def test_result_waits_for_its_storage(
    settings: Settings, s3_url: str, relay: S3Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given storage that is away at the end of a paid call, then the call is not repeated."""
    monkeypatch.setattr("toolkit.engine.services.artifacts.RESULT_RETRY_S", 0.01)
    faults = Faults()
    update = {"artifact_url": s3_url, "artifact_endpoint_url": relay.url}
    with Client.local(settings=settings.model_copy(update=update), faults=faults) as client:
        relay.cut()
        run = client.runs.create("image.generate", {"prompt": "a leaf"})
        wait_until(lambda: len(relay.refused) > 4)  # more than the retries of one call
        relay.heal()
        assert run.wait().status == "completed"
        assert len(run.record.attempts) == 1
        assert client.artifacts.content(run.artifact_id).startswith(b"\x89PNG")


@pytest.mark.parametrize("reads", ["proxied", "presigned"])
def test_storage_that_hangs_gets_503_in_ten_seconds(
    settings: Settings, s3_url: str, s3_server: str, reads: str
) -> None:
    """Given storage that hangs, then reads and uploads get 503 with Retry-After, until it answers.

    More callers wait than calls of storage may run at once.
    """
    link = NetworkLink(int(s3_server.rpartition(":")[2]))
    endpoint = f"http://127.0.0.1:{link.port}"
    update = {"artifact_url": s3_url, "artifact_endpoint_url": endpoint, "artifact_reads": reads}
    server = Server(settings.model_copy(update=update))
    client = sign_up_client(server.url)
    headers = {"Authorization": f"Bearer {read_key(client)}"}
    artifacts = f"{server.url}/v1/artifacts"
    content = f"{artifacts}/{client.artifacts.upload(DATA).id}/content"

    def ask(number: int) -> tuple[int, str | None, float]:
        began = time.monotonic()
        with httpx.Client(headers=headers, timeout=PATIENCE_S, trust_env=False) as http:
            if number % 3 == 0:
                data = {"file": ("new.bin", os.urandom(2**14) + DATA * (number % 2))}
                answer = http.post(artifacts, files=data)
            else:
                byte_range = {"Range": "bytes=5-9"} if number % 3 == 1 else {}
                answer = http.get(content, headers=byte_range)
        return answer.status_code, answer.headers.get("retry-after"), time.monotonic() - began

    try:
        link.hold()
        with ThreadPoolExecutor(WAITING) as threads:
            answers = list(threads.map(ask, range(WAITING)))
        assert {status for status, _, _ in answers} == {503}
        assert all(after is not None and int(after) >= 1 for _, after, _ in answers)
        assert max(seconds for _, _, seconds in answers) < MAX_ANSWER_S
        link.heal()
        status = 206 if reads == "proxied" else 307
        wait_until(lambda: ask(1)[0] == status, "storage answers again")
    finally:
        link.close()
        client.close()
        server.close()
