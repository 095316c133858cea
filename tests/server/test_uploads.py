"""Forms that are made to be hard to read are refused at once, whatever they have too much of."""

import time

import pytest

from tests.server.conftest import Wire

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
    "no file": (KIND, FIELD % (b"metadata", b"{}") + END),
    "metadata that is no object": (KIND, PART + FIELD % (b"metadata", b"[]") + END),
    "deep metadata": (KIND, PART + FIELD % (b"metadata", b"[" * 60_000) + END),
    "metadata with NaN": (KIND, PART + FIELD % (b"metadata", b'{"a": NaN}') + END),
    "metadata with a NUL": (KIND, PART + FIELD % (b"metadata", b'{"a": "\\u0000"}') + END),
    "nothing": (KIND, b""),
}


@pytest.mark.parametrize(("kind", "raw"), FORMS.values(), ids=FORMS)
async def test_a_form_that_cannot_be_read_is_refused_at_once(
    wire: Wire, kind: str, raw: bytes
) -> None:
    """Given a faulty form, then 400 says what is wrong, soon, and nothing is kept."""
    before = await wire.rows()
    began = time.process_time()
    answer = await wire.send("POST", "/v1/artifacts", content=raw, headers={"Content-Type": kind})
    assert time.process_time() - began < 1
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")
    assert answer.json()["error"]["details"][0]["message"]
    assert await wire.rows() == before


@pytest.mark.parametrize("quoted", [False, True])
async def test_a_proper_form_is_taken(wire: Wire, quoted: bool) -> None:
    """Given a form as browsers send it, with a file that has dashes of its own, then it is kept."""
    kind = KIND.replace("frontier", '"frontier"') if quoted else KIND
    data = b"--frontie\r\n\r\n-- tea --frontier"
    raw = PART.replace(b"tea", data) + FIELD % (b"metadata", b'{"a": 1}') + END
    answer = await wire.send("POST", "/v1/artifacts", content=raw, headers={"Content-Type": kind})
    made = answer.json()["data"]
    assert (answer.status_code, made["metadata"], made["size_bytes"]) == (201, {"a": 1}, len(data))
    content = await wire.send("GET", f"/v1/artifacts/{made['id']}/content")
    assert content.content == data
