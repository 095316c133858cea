"""Artifacts: where they came from, and how they go."""

import os
import tracemalloc
from pathlib import Path

import pytest

from toolkit import AsyncClient, Client, RequestError, ServiceError, Workflow

LARGE = b"tea leaves " * 1000


def files(data_dir: Path) -> list[Path]:
    """The files of bytes."""
    return [path for path in (data_dir / "artifacts").glob("*/*") if path.is_file()]


def test_lineage_leads_back_to_the_first(client: Client) -> None:
    """Given a chain of three nodes, then the last artifact tells of all that it came from."""
    flow = Workflow("card")
    facts = flow.add("facts", "research.gather", topic="Tea")
    copy = flow.add("copy", "llm.generate", objective="A line on tea", depends_on=[facts])
    flow.add("card", "composition.layout", title="Tea", depends_on=[copy])
    done = client.workflows.submit(flow).wait()
    lineage = client.artifacts.lineage(done.final_artifact_id)
    assert [job.node_id for job in lineage.jobs] == ["card", "copy", "facts"]
    assert lineage.jobs[0].from_artifacts["copy"] == lineage.jobs[1].artifact_id
    assert [a.id for a in lineage.artifacts] == [job.artifact_id for job in lineage.jobs]
    assert lineage.jobs[1].provider == "minimax"
    assert lineage.record.complete
    assert "3 jobs" in repr(lineage)
    assert list(lineage.to_frame()["node_id"]) == ["card", "copy", "facts"]


def test_lineage_leads_to_uploads(client: Client) -> None:
    """Given a cloned voice, then what it came from is the reference that was uploaded."""
    spoken = client.runs.create("speech.generate", {"text": "A longer text on tea. " * 12}).wait()
    reference = client.artifacts.upload(client.artifacts.get(spoken.artifact_id).content())
    assert client.artifacts.lineage(reference.id).jobs == []
    given = {"reference_audio": reference.id, "name": "narrator"}
    cloned = client.runs.create("voice.clone", given).wait()
    lineage = client.artifacts.lineage(cloned.artifact_id)
    assert lineage.jobs[0].from_artifacts == {"reference_audio": reference.id}
    assert [a.id for a in lineage.artifacts] == [cloned.artifact_id, reference.id]


def test_deleting_takes_record_and_bytes(client: Client, data_dir: Path) -> None:
    """Given two uploads of the same bytes, then the bytes go with the last of them."""
    one, two = client.artifacts.upload(LARGE), client.artifacts.upload(LARGE)
    (path,) = files(data_dir)
    os.utime(path, (0, 0))  # stored long ago
    deleted = client.artifacts.delete(one.id)
    assert deleted.record.deleted
    assert two.refresh().content() == LARGE
    with pytest.raises(RequestError, match=r"^NOT_FOUND:"):
        client.artifacts.get(one.id)
    assert [a.id for a in client.artifacts.list()] == [two.id]
    two.delete()
    assert files(data_dir) == []


def test_bytes_that_come_again_stay(client: Client, data_dir: Path) -> None:
    """Given bytes that were just deleted, when they are uploaded again, then they are there."""
    one = client.artifacts.upload(LARGE)
    client.artifacts.delete(one.id)
    again = client.artifacts.upload(LARGE)
    assert client.artifacts.get(again.id).content() == LARGE


def test_what_goes_on_is_not_deleted(client: Client) -> None:
    """Given a workflow under way, then what its nodes made so far cannot be deleted."""
    flow, before = Workflow("long"), []
    for i in range(300):
        before = [flow.add(f"n{i}", "llm.generate", objective="Tea", depends_on=before)]
    run = client.workflows.submit(flow)
    first = None
    while first is None:
        first = client.workflows.get(run.id).nodes[0].artifact_id
    with pytest.raises(RequestError, match=r"^CONFLICT:"):
        client.artifacts.delete(first)
    run.cancel()
    assert client.artifacts.delete(first).record.deleted


def test_files_come_and_go_in_pieces(client: Client, tmp_path: Path) -> None:
    """Given a file of 32 MB, then it is uploaded and saved whole, and nobody has it in memory."""
    source, folder = tmp_path / "leaves.bin", tmp_path / "saved"
    folder.mkdir()
    piece = os.urandom(2**20)
    with source.open("wb") as file:
        for _ in range(32):
            file.write(piece)
    tracemalloc.start()
    try:
        kept = client.artifacts.upload(source)
        saved = kept.save(folder)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept.size_bytes == 2**25
    assert saved == folder / kept.filename
    assert saved.read_bytes() == source.read_bytes()
    assert peak < 2**24


def test_what_is_not_whole_is_not_saved(client: Client, data_dir: Path, tmp_path: Path) -> None:
    """Given bytes that were damaged in the store, when they are saved, then no file is there."""
    kept = client.artifacts.upload(LARGE * 200)
    (path,) = files(data_dir)
    with path.open("r+b") as file:
        file.seek(1_500_000)
        file.write(b"dust")
    folder = tmp_path / "saved"
    folder.mkdir()
    (folder / kept.filename).write_text("what was there before")
    for path in (folder, folder / kept.filename):
        with pytest.raises(ServiceError, match="nothing was saved"):
            kept.save(path, overwrite=True)
    assert [one.read_text() for one in folder.iterdir()] == ["what was there before"]


async def test_async_clients_take_files_in_pieces(
    async_client: AsyncClient, tmp_path: Path
) -> None:
    """Given the client to be awaited, then it uploads and saves as the other does."""
    source = tmp_path / "leaves.bin"
    source.write_bytes(LARGE * 200)
    kept = await async_client.artifacts.upload(source)
    saved = await kept.save(tmp_path / "saved.bin")
    assert saved.read_bytes() == source.read_bytes()
