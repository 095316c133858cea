"""Artifacts over HTTP: uploaded and checked at once, and read whole, in part or in chunks."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.server.conftest import ON_ITS_LOOP, Wire, call_app
from toolkit.server import create_app
from toolkit.server.http.downloads import CHUNK_BYTES, MAX_DOWNLOADS_PER_KEY
from toolkit.server.http.uploads import MAX_UPLOADS_PER_KEY

B = b"frontier"

KIND = "multipart/form-data; boundary=frontier"

HEAD = b'Content-Disposition: form-data; name="file"; filename="a.txt"\r\n'

PART = b"--" + B + b"\r\n" + HEAD + b"\r\ntea\r\n"

END = b"--" + B + b"--\r\n"

FIELD = b"--" + B + b'\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'

MIB = 1024 * 1024

FORMS = {
    "no boundary": ("multipart/form-data", PART + END),
    "an empty boundary": ('multipart/form-data; boundary=""', PART + END),
    "a long boundary": ("multipart/form-data; boundary=" + "b" * 71, PART + END),
    "an improper boundary": ('multipart/form-data; boundary="a\\b"', PART + END),
    "a boundary that ends in a blank": ('multipart/form-data; boundary="b "', PART + END),
    "a long preamble": (KIND, b"-" * MIB + PART + END),
    "an epilogue": (KIND, PART + END + b"-" * MIB),
    "no end": (KIND, PART + b"x" * MIB),
    "ends that are none": (KIND, PART + (b"\r\n--frontie" * 90_000)),
    "many parts": (KIND, (FIELD % (b"a", b"1")) * 10_000 + END),
    "two files": (KIND, PART + PART + END),
    "two fields": (KIND, PART + FIELD % (b"metadata", b"{}") + FIELD % (b"more", b"{}") + END),
    "a long head": (KIND, PART.replace(HEAD, HEAD + b"X-A: 1\r\n" * 100_000) + END),
    "a head without end": (KIND, b"--" + B + b"\r\n" + b"X-A: " + b"1" * MIB),
    "a long name": (KIND, PART + FIELD % (b"n" * 65, b"{}") + END),
    "no name": (KIND, PART.replace(b' name="file";', b"") + END),
    "an empty file": (KIND, PART.replace(b"tea", b"") + END),
    "no file": (KIND, FIELD % (b"metadata", b"{}") + END),
    "metadata that is no object": (KIND, PART + FIELD % (b"metadata", b"[]") + END),
    "deep metadata": (KIND, PART + FIELD % (b"metadata", b"[" * 60_000) + END),
    "metadata with NaN": (KIND, PART + FIELD % (b"metadata", b'{"a": NaN}') + END),
    "metadata with a NUL": (KIND, PART + FIELD % (b"metadata", b'{"a": "\\u0000"}') + END),
    "nothing": (KIND, b""),
}


async def post_form(wire: Wire, raw: bytes, kind: str = KIND) -> httpx.Response:
    """Upload a form as it is."""
    return await wire.send("POST", "/v1/artifacts", content=raw, headers={"Content-Type": kind})


@pytest.mark.parametrize(("kind", "raw"), FORMS.values(), ids=FORMS)
@ON_ITS_LOOP
async def test_rejects_a_faulty_form_at_once(shared_wire: Wire, kind: str, raw: bytes) -> None:
    """Given a faulty form, then 400 names the fault within a second, and nothing is stored."""
    before = await shared_wire.rows()
    began = time.process_time()
    answer = await post_form(shared_wire, raw, kind)
    assert time.process_time() - began < 1
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")
    assert answer.json()["error"]["details"][0]["message"]
    assert await shared_wire.rows() == before


async def test_rejects_a_body_that_is_no_form(wire: Wire) -> None:
    """Given JSON instead of a form, then 415."""
    assert (await wire.send("POST", "/v1/artifacts", json={})).status_code == 415


@pytest.mark.parametrize("quoted", [False, True])
@ON_ITS_LOOP
async def test_accepts_a_valid_form(shared_wire: Wire, quoted: bool) -> None:
    """Given a form as browsers send it, whose file contains dashes, then it is stored."""
    kind = KIND.replace("frontier", '"frontier"') if quoted else KIND
    data = b"--frontie\r\n\r\n-- tea --frontier"
    raw = PART.replace(b"tea", data) + FIELD % (b"metadata", b'{"a": 1}') + END
    answer = await post_form(shared_wire, raw, kind)
    artifact = answer.json()["data"]
    assert (answer.status_code, artifact["metadata"], artifact["size_bytes"]) == (
        201,
        {"a": 1},
        len(data),
    )
    content = await shared_wire.send("GET", f"/v1/artifacts/{artifact['id']}/content")
    assert content.content == data


def nest(depth: int) -> bytes:
    """Return an object with nested lists, of a depth in total."""
    return b'{"a": ' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


@pytest.mark.parametrize(
    ("accepted", "rejected"),
    [
        (nest(64), nest(65)),
        (b'{"a": 1e308}', b'{"a": 1e309}'),
        (b'{"a": -1e308}', b'{"a": -1e309}'),
        (b'{"a": 9223372036854775807}', b'{"a": 9223372036854775808}'),
        (b'{"a": -9223372036854775807}', b'{"a": -9223372036854775809}'),
    ],
    ids=["depth", "number", "negative number", "integer", "negative integer"],
)
@ON_ITS_LOOP
async def test_limits_the_values_of_metadata(
    shared_wire: Wire, accepted: bytes, rejected: bytes
) -> None:
    """Given metadata at a limit and beyond it, then only the first is accepted."""
    for metadata, status in ((accepted, 201), (rejected, 400)):
        raw = PART + FIELD % (b"metadata", metadata) + END
        answer = await post_form(shared_wire, raw)
        assert answer.status_code == status, answer.text


@pytest.mark.parametrize("short", range(-4, 20, 3))
@ON_ITS_LOOP
async def test_reads_a_boundary_across_chunks(shared_wire: Wire, short: int) -> None:
    """Given a form whose last boundary lies across two chunks, then the file is stored."""
    tail = b"\r\n" + END
    data = b"t" * (CHUNK_BYTES - len(PART) - len(tail) + len(b"tea\r\n") + short)
    raw = PART.replace(b"tea\r\n", data) + tail
    answer = await post_form(shared_wire, raw)
    assert (answer.status_code, answer.json()["data"]["size_bytes"]) == (201, len(data))


LARGE = bytes(range(256)) * 4096 * 4  # four megabytes


async def test_limits_unfinished_uploads_by_key(wire: Wire) -> None:
    """Given unfinished uploads, then their number is limited by key."""
    release = asyncio.Event()

    async def send_slowly() -> AsyncIterator[bytes]:
        yield PART[:-5]
        await release.wait()
        yield b"tea\r\n" + END

    async def upload(headers: dict[str, str] | None = None) -> int:
        # Without a length, any size is possible.
        kind = {"Content-Type": KIND, **(headers or wire.headers)}
        answer = await wire.send("POST", "/v1/artifacts", content=send_slowly(), headers=kind)
        return answer.status_code

    bobs_headers = await wire.sign_up("half@example.org")
    uploads = {asyncio.create_task(upload()) for _ in range(MAX_UPLOADS_PER_KEY + 1)}
    rejected, uploads = await asyncio.wait(uploads, return_when=asyncio.FIRST_COMPLETED)
    assert [task.result() for task in rejected] == [429]
    bobs_upload = asyncio.create_task(upload(bobs_headers))
    release.set()
    assert await bobs_upload == 201
    assert {await task for task in uploads} == {201}
    assert await upload() == 201


async def test_sends_a_download_in_chunks(wire: Wire) -> None:
    """Given a large artifact, then it is sent whole, in chunks of a limited size."""
    upload = await wire.send("POST", "/v1/artifacts", files={"file": ("a.bin", LARGE)})
    path = f"/v1/artifacts/{upload.json()['id']}/content"
    chunks: list[bytes] = []

    async def send(message: dict[str, Any]) -> None:
        chunks.append(message.get("body", b""))

    await call_app(create_app(wire.engine), path, wire.headers, send)
    assert max(map(len, chunks)) == CHUNK_BYTES
    assert b"".join(chunks) == LARGE


async def test_limits_downloads_by_key(wire: Wire) -> None:
    """Given as many open downloads as a key may have, then the next gets 429."""
    upload = await wire.send("POST", "/v1/artifacts", files={"file": ("a.bin", LARGE)})
    path = f"/v1/artifacts/{upload.json()['id']}/content"
    app, release, has_started = create_app(wire.engine), asyncio.Event(), asyncio.Semaphore(0)
    statuses: list[int] = []

    async def send(message: dict[str, Any]) -> None:
        if "status" in message:
            statuses.append(message["status"])
        elif len(message.get("body", b"")) == CHUNK_BYTES:
            has_started.release()
            await release.wait()

    downloads = [
        asyncio.create_task(call_app(app, path, wire.headers, send))
        for _ in range(MAX_DOWNLOADS_PER_KEY)
    ]
    for _ in downloads:
        await has_started.acquire()
    await call_app(app, path, wire.headers, send)
    assert statuses == [200] * MAX_DOWNLOADS_PER_KEY + [429]
    release.set()
    await asyncio.gather(*downloads)
    await call_app(app, path, wire.headers, send)
    assert statuses[-1] == 200


@pytest.mark.parametrize(
    ("byte_range", "status", "part"),
    [
        (None, 200, slice(None)),
        ("bytes=2-4", 206, slice(2, 5)),
        ("bytes=-3", 206, slice(-3, None)),
        ("bytes=8-", 206, slice(8, None)),
        ("bytes=8-999999", 206, slice(8, None)),
        ("bytes=500000-", 416, slice(0)),
        ("lines=1-2", 200, slice(None)),
    ],
)
@pytest.mark.parametrize("times", [1, 10_000], ids=["inline", "in a file"])
@ON_ITS_LOOP
async def test_uploads_and_reads_an_artifact(
    shared_wire: Wire, byte_range: str | None, status: int, part: slice, times: int
) -> None:
    """Given an upload, then its bytes come back whole or in part, and no browser runs them."""
    content = b"0123456789" * times
    upload = await shared_wire.send("POST", "/v1/artifacts", files={"file": ("../x.html", content)})
    assert upload.status_code == 201
    data = upload.json()["data"]
    assert (data["media_type"], data["size_bytes"]) == ("text/plain", len(content))
    headers = {} if byte_range is None else {"Range": byte_range}
    answer = await shared_wire.send("GET", f"/v1/artifacts/{data['id']}/content", headers=headers)
    assert answer.status_code == status
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    if status == 416:
        assert answer.json()["error"]["code"] == "INVALID_REQUEST"
        assert answer.headers["Content-Range"] == f"bytes */{len(content)}"
        return
    assert answer.content == content[part]
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{data["id"]}.txt"'
    assert "sandbox" in answer.headers["Content-Security-Policy"]
