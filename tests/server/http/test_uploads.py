"""Forms that are made to be hard to read are refused at once, whatever they have too much of."""

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
    """Upload a form as it stands."""
    return await wire.send("POST", "/v1/artifacts", content=raw, headers={"Content-Type": kind})


@pytest.mark.parametrize(("kind", "raw"), FORMS.values(), ids=FORMS)
@ON_ITS_LOOP
async def test_a_form_that_cannot_be_read_is_refused_at_once(
    shared_wire: Wire, kind: str, raw: bytes
) -> None:
    """Given a faulty form, then 400 says what is wrong, soon, and nothing is kept."""
    before = await shared_wire.rows()
    began = time.process_time()
    answer = await post_form(shared_wire, raw, kind)
    assert time.process_time() - began < 1
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")
    assert answer.json()["error"]["details"][0]["message"]
    assert await shared_wire.rows() == before


async def test_a_body_that_is_no_form_is_refused(wire: Wire) -> None:
    """Given JSON where a form belongs, then 415."""
    assert (await wire.send("POST", "/v1/artifacts", json={})).status_code == 415


@pytest.mark.parametrize("quoted", [False, True])
@ON_ITS_LOOP
async def test_a_proper_form_is_taken(shared_wire: Wire, quoted: bool) -> None:
    """Given a form as browsers send it, with a file that has dashes of its own, then it is kept."""
    kind = KIND.replace("frontier", '"frontier"') if quoted else KIND
    data = b"--frontie\r\n\r\n-- tea --frontier"
    raw = PART.replace(b"tea", data) + FIELD % (b"metadata", b'{"a": 1}') + END
    answer = await post_form(shared_wire, raw, kind)
    made = answer.json()["data"]
    assert (answer.status_code, made["metadata"], made["size_bytes"]) == (201, {"a": 1}, len(data))
    content = await shared_wire.send("GET", f"/v1/artifacts/{made['id']}/content")
    assert content.content == data


def nest(depth: int) -> bytes:
    """An object as the outermost of so many nested values."""
    return b'{"a": ' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


@pytest.mark.parametrize(
    ("taken", "refused"),
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
async def test_metadata_is_bounded(shared_wire: Wire, taken: bytes, refused: bytes) -> None:
    """Given metadata at a bound of JSON and beyond it, then the one is kept, the other refused."""
    for metadata, status in ((taken, 201), (refused, 400)):
        raw = PART + FIELD % (b"metadata", metadata) + END
        answer = await post_form(shared_wire, raw)
        assert answer.status_code == status, answer.text


@pytest.mark.parametrize("short", range(-4, 20, 3))
@ON_ITS_LOOP
async def test_a_form_is_read_wherever_a_chunk_ends(shared_wire: Wire, short: int) -> None:
    """Given a form whose last boundary lies across the chunks it is read in, then it is kept."""
    tail = b"\r\n" + END
    data = b"t" * (CHUNK_BYTES - len(PART) - len(tail) + len(b"tea\r\n") + short)
    raw = PART.replace(b"tea\r\n", data) + tail
    answer = await post_form(shared_wire, raw)
    assert (answer.status_code, answer.json()["data"]["size_bytes"]) == (201, len(data))


LARGE = bytes(range(256)) * 4096 * 4  # four megabytes


async def test_half_uploads_take_no_memory_and_are_bounded_by_key(wire: Wire) -> None:
    """Given uploads that do not end, then a key may have so many, and others go on."""
    release = asyncio.Event()

    async def half() -> AsyncIterator[bytes]:
        yield PART[:-5]
        await release.wait()
        yield b"tea\r\n" + END

    async def upload(headers: dict[str, str] | None = None) -> int:
        # Without a length it may be as large as any.
        sent = {"Content-Type": KIND, **(headers or wire.headers)}
        answer = await wire.send("POST", "/v1/artifacts", content=half(), headers=sent)
        return answer.status_code

    other = await wire.sign_up("half@example.org")
    coming = {asyncio.create_task(upload()) for _ in range(MAX_UPLOADS_PER_KEY + 1)}
    refused, coming = await asyncio.wait(coming, return_when=asyncio.FIRST_COMPLETED)
    assert [one.result() for one in refused] == [429]
    theirs = asyncio.create_task(upload(other))
    release.set()
    assert await theirs == 201
    assert {await one for one in coming} == {201}
    assert await upload() == 201


async def test_a_download_is_read_as_it_is_taken(wire: Wire) -> None:
    """Given a large artifact, then it is sent in chunks, and its ranges are as they were."""
    made = await wire.send("POST", "/v1/artifacts", files={"file": ("a.bin", LARGE)})
    path = f"/v1/artifacts/{made.json()['id']}/content"
    whole = await wire.send("GET", path)
    assert (whole.status_code, whole.content == LARGE) == (200, True)
    assert whole.headers["content-length"] == str(len(LARGE))
    ranged = {**wire.headers, "Range": f"bytes=5-{CHUNK_BYTES * 2}"}
    part = await wire.send("GET", path, headers=ranged)
    assert (part.status_code, part.content == LARGE[5 : CHUNK_BYTES * 2 + 1]) == (206, True)
    sizes: list[int] = []

    async def send(message: dict[str, Any]) -> None:
        sizes.append(len(message.get("body", b"")))

    await call_app(create_app(wire.engine), path, wire.headers, send)
    assert max(sizes) == CHUNK_BYTES
    assert sum(sizes) == len(LARGE)


async def test_downloads_are_bounded_by_key(wire: Wire) -> None:
    """Given as many downloads that are not taken as a key may have, then it waits for the next."""
    made = await wire.send("POST", "/v1/artifacts", files={"file": ("a.bin", LARGE)})
    path = f"/v1/artifacts/{made.json()['id']}/content"
    app, release, going = create_app(wire.engine), asyncio.Event(), asyncio.Semaphore(0)
    statuses: list[int] = []

    async def send(message: dict[str, Any]) -> None:
        if "status" in message:
            statuses.append(message["status"])
        elif len(message.get("body", b"")) == CHUNK_BYTES:
            going.release()
            await release.wait()

    taking = [
        asyncio.create_task(call_app(app, path, wire.headers, send))
        for _ in range(MAX_DOWNLOADS_PER_KEY)
    ]
    for _ in taking:
        await going.acquire()
    await call_app(app, path, wire.headers, send)
    assert statuses == [200] * MAX_DOWNLOADS_PER_KEY + [429]
    release.set()
    await asyncio.gather(*taking)
    await call_app(app, path, wire.headers, send)
    assert statuses[-1] == 200
