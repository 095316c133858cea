"""The files of a data directory: keys only as digests, and no file name chosen by a caller."""

import hashlib
import re
from base64 import urlsafe_b64decode
from pathlib import Path

import pytest

from toolkit import Client, ToolkitError
from toolkit.settings import Settings

LARGE = b"tea " * 4096  # too large for the row of its record


def test_stores_a_key_only_as_digest(settings: Settings) -> None:
    """Given a key, then it has 256 random bits, and only its SHA-256 digest is stored."""
    with Client.local(settings=settings) as client:
        keys = [client.api_keys.create(name=name).api_key for name in ("one", "two")]
    stored_bytes = b"".join(p.read_bytes() for p in settings.data_dir.rglob("*") if p.is_file())
    for key in keys:
        assert len(urlsafe_b64decode(key.removeprefix("sk_live_") + "=")) == 32
        assert key.encode() not in stored_bytes
        assert hashlib.sha256(key.encode()).hexdigest().encode() in stored_bytes
    assert keys[0][:16] != keys[1][:16]


def test_callers_choose_no_file_names(settings: Settings, tmp_path: Path) -> None:
    """Given names that lead elsewhere, then files are named by digests and stay inside."""
    evil = "../../evil"
    with Client.local(settings=settings) as client:
        file = tmp_path / "evil.txt"
        file.write_bytes(LARGE)
        artifact = client.artifacts.upload(file, filename=evil)
        assert evil not in artifact.record.filename
        node = {"id": evil, "capability": "composition.layout", "input": {"title": "x"}}
        client.workflows.create({"name": evil, "nodes": [node]}).wait()
        with pytest.raises(ToolkitError, match="NOT_FOUND"):
            client.artifacts.get(evil)
    blobs = settings.data_dir / "artifacts"
    placed = [p.relative_to(blobs).as_posix() for p in blobs.rglob("*") if p.is_file()]
    digest = hashlib.sha256(LARGE).hexdigest()
    assert f"{digest[:2]}/{digest[2:]}" in placed
    assert all(re.fullmatch(r"[0-9a-f]{2}/[0-9a-f]{62}", name) for name in placed)
    assert {path.name for path in tmp_path.iterdir()} == {"data", "evil.txt"}
