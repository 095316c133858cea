"""Bytes of artifacts: their media types, and how long deleted bytes wait for a record to come."""

from collections.abc import AsyncIterator

import pytest

from toolkit import Client
from toolkit.contract.base import Record, Request
from toolkit.engine import Engine, Registry
from toolkit.engine.request_context import RequestContext
from toolkit.local import open_engine
from toolkit.plugins import Blob, Call, Capability, Flow, Result
from toolkit.settings import Settings

LARGE = b"tea leaves " * 10_000


class NoteInput(Request):
    """The media type that the note claims."""

    media_type: str


class NoteOutput(Record):
    """Nothing but the artifact."""


def write_note(call: Call[NoteInput]) -> Flow[Result]:
    """Return a note, with its media type spelled as the caller has it."""
    yield from ()
    return Result({}, Blob(b"Tea and tides.", call.input.media_type))


NOTE = Capability(
    id="note.write",
    title="Write a note",
    description="Writes a note.",
    input_model=NoteInput,
    output_model=NoteOutput,
    flow=write_note,
)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("text/plain", "text/plain"),
        ("Text/Plain; charset=UTF-8", "text/plain"),
        ("text/plain;format=flowed ; charset=utf-8", "text/plain"),
        ("text/html; charset=utf-8", "application/octet-stream"),
    ],
)
def test_a_media_type_is_kept_without_its_parameters(
    settings: Settings, given: str, kept: str
) -> None:
    """Given a result whose media type has parameters, then the artifact has the bare type."""
    with Client.local(settings=settings, registry=Registry.load(extra=[NOTE])) as client:
        run = client.runs.create("note.write", {"media_type": given}).wait()
        assert client.artifacts.get(run.artifact_id).record.media_type == kept


@pytest.fixture
async def engine(settings: Settings) -> AsyncIterator[Engine]:
    """An engine with the owner's account."""
    engine = await open_engine(settings)
    yield engine
    await engine.close(0)


async def test_bytes_stay_for_a_record_that_is_about_to_be_written(
    engine: Engine,
) -> None:
    """Given equal bytes stored again, when the first artifact is deleted, then they stay."""
    owner, _ = await engine.accounts.open_local_account()
    context, blob = RequestContext(owner.id), Blob(LARGE, "text/plain")
    first, inserted = await engine.artifacts.store(owner.id, blob, job_id=None)
    await engine.core.store.write([inserted])
    second, later = await engine.artifacts.store(owner.id, blob, job_id=None)
    await engine.artifacts.delete(context, first.artifact.id)
    await engine.core.store.write([later])
    assert await engine.core.store.blobs.get(second.artifact.sha256) == LARGE
