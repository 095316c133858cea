"""The shapes of what succeeds: envelopes, pages, waits, artifacts, the OpenAPI document."""

import pytest

from tests.server.conftest import Wire

RUN = {"target": "capability", "name": "research.gather", "version": "1", "input": {"topic": "Tea"}}


@pytest.mark.parametrize(
    ("wanted", "status", "part"),
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
@pytest.mark.parametrize("times", [1, 10_000], ids=["beside its record", "in a file"])
async def test_an_artifact_is_uploaded_and_read_in_ranges(
    wire: Wire, wanted: str | None, status: int, part: slice, times: int
) -> None:
    """Given an upload, then its bytes come back whole or in part, never to be run by a browser."""
    content = b"0123456789" * times
    made = await wire.send("POST", "/v1/artifacts", files={"file": ("../x.html", content)})
    assert made.status_code == 201
    data = made.json()["data"]
    assert (data["media_type"], data["size_bytes"]) == ("text/plain", len(content))
    headers = {} if wanted is None else {"Range": wanted}
    answer = await wire.send("GET", f"/v1/artifacts/{data['id']}/content", headers=headers)
    assert answer.status_code == status
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    if status == 416:
        assert answer.json()["error"]["code"] == "INVALID_REQUEST"
        assert answer.headers["Content-Range"] == f"bytes */{len(content)}"
        return
    assert answer.content == content[part]
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{data["id"]}.txt"'
    assert "sandbox" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"json": {}}, 415),
        ({"files": {"other": ("x", b"1")}}, 400),
        ({"files": {"file": ("x", b"")}}, 400),
        ({"files": {"file": ("x", b"1")}, "data": {"metadata": "[]"}}, 400),
        ({"content": b"--", "headers": {"Content-Type": "multipart/form-data"}}, 400),
        (
            {"content": b"x" * 9, "headers": {"Content-Type": "multipart/form-data; boundary=y"}},
            400,
        ),
    ],
)
async def test_an_upload_that_is_none_is_refused(
    wire: Wire, options: dict[str, object], status: int
) -> None:
    """Given a body that is no upload, then it is refused and nothing is kept."""
    answer = await wire.send("POST", "/v1/artifacts", **options)
    assert answer.status_code == status, answer.text
    assert (await wire.rows())["artifacts"] == 0
