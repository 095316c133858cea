"""Pictures of workflows with many nodes: they are folded, or scroll, and stay readable."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolkit import Client, Workflow
from toolkit.sandbox import Faults

NODES = 200
ROW_PIXELS = 24


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A client whose language models refuse all work."""
    faults = Faults()
    faults.fail("*", status=400)
    with Client.local(tmp_path, faults=faults) as made:
        yield made


def _read_height(svg: str) -> int:
    found = re.search(r' height="(\d+)"', svg)
    assert found is not None
    return int(found.group(1))


@pytest.mark.parametrize("shape", ["a chain", "a fan"])
def test_a_long_timeline_is_folded(client: Client, shape: str) -> None:
    """Given more nodes than a picture can hold, then all are counted in at most 60 rows."""
    flow = Workflow("long")
    flow.add("n0", "llm.generate", objective="Tea")
    for n in range(1, NODES):
        before = f"n{n - 1}" if shape == "a chain" else "n0"
        flow.add(f"n{n}", "llm.generate", objective="Tea", depends_on=[before])
    timeline = client.workflows.submit(flow).wait(progress=False, check=False).timeline()

    svg = timeline.picture()
    rows = re.findall(r'text-anchor="end"[^>]*>([^<]+)<', svg)
    counts = [int(count) for count in re.findall(r"and (\d+) more", " ".join(rows))]
    assert len(rows) <= 60
    assert _read_height(svg) <= 60 * ROW_PIXELS + 150
    assert len(rows) + sum(counts) == NODES
    assert len(timeline.to_frame()) == NODES
    assert timeline.plot()._repr_png_().startswith(b"\x89PNG")


def test_a_graph_that_is_wider_than_a_cell_scrolls(client: Client) -> None:
    """Given a chain of 27 nodes, then a notebook does not shrink its labels, but lets it scroll."""
    flow = Workflow("chain")
    for n in range(27):
        before = [f"n{n - 1}"] if n else []
        flow.add(f"n{n}", "llm.generate", objective="Tea", depends_on=before)

    for shown in (flow, client.workflows.submit(flow).wait(progress=False, check=False)):
        bundle, metadata = shown._repr_mimebundle_()  # type: ignore[misc]
        assert metadata["image/svg+xml"]["unconfined"]
        assert bundle["image/png"]
