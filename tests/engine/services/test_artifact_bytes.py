"""Artifacts: their media types, and bytes that stay for a record about to be written."""

from collections.abc import AsyncIterator

import pytest

from tests.support.engine_accounts import connect_account
from toolkit.engine import Engine
from toolkit.local import open_engine
from toolkit.plugins import Blob
from toolkit.settings import Settings

LARGE = b"tea leaves " * 10_000


@pytest.fixture
async def engine(settings: Settings) -> AsyncIterator[Engine]:
    """An engine."""
    engine = await open_engine(settings)
    yield engine
    await engine.close(0)


@pytest.mark.parametrize(
    ("claimed", "media_type"),
    [
        ("text/plain", "text/plain"),
        ("Text/Plain; charset=UTF-8", "text/plain"),
        ("text/plain;format=flowed ; charset=utf-8", "text/plain"),
        ("text/html; charset=utf-8", "application/octet-stream"),
    ],
)
async def test_stores_a_media_type_without_parameters(
    engine: Engine, claimed: str, media_type: str
) -> None:
    """Given bytes whose media type has parameters, then the artifact has the bare type."""
    context = await connect_account(engine)
    blob = Blob(b"Tea and tides.", claimed)
    stored, _ = await engine.artifacts.store(context.account_id, blob, job_id=None)
    assert stored.artifact.media_type == media_type


async def test_keeps_bytes_for_a_record_about_to_be_written(engine: Engine) -> None:
    """Given equal bytes stored again, when the first artifact is deleted, then they stay."""
    context, blob = await connect_account(engine), Blob(LARGE, "text/plain")
    first, row = await engine.artifacts.store(context.account_id, blob, job_id=None)
    await engine.core.store.write([row])
    second, later_row = await engine.artifacts.store(context.account_id, blob, job_id=None)
    await engine.artifacts.delete(context, first.artifact.id)
    await engine.core.store.write([later_row])
    assert await engine.core.store.blobs.get(second.artifact.sha256) == LARGE
