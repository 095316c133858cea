"""An artifact over HTTP: uploaded, and read whole or in ranges."""

import pytest

from tests.server.conftest import ON_ITS_LOOP, Wire


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
