"""Pictures of workflows with many nodes: they fold or scroll, and stay readable."""

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

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
    with Client.local(tmp_path, faults=faults) as client:
        yield client


@pytest.mark.parametrize("shape", ["a chain", "a fan"])
def test_folds_a_long_timeline(client: Client, shape: str) -> None:
    """Given more nodes than fit in a picture, then at most 60 rows count all of them."""
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
    assert float(ElementTree.fromstring(svg).get("height", "inf")) <= 60 * ROW_PIXELS + 150
    assert len(rows) + sum(counts) == NODES
    assert len(timeline.to_frame()) == NODES
    assert timeline.plot()._repr_png_().startswith(b"\x89PNG")


def test_a_wide_graph_scrolls(client: Client) -> None:
    """Given a chain of 27 nodes, then the notebook scrolls instead of shrinking the labels."""
    flow = Workflow("chain")
    for n in range(27):
        before = [f"n{n - 1}"] if n else []
        flow.add(f"n{n}", "llm.generate", objective="Tea", depends_on=before)

    for graph in (flow, client.workflows.submit(flow).wait(progress=False, check=False)):
        bundle, metadata = graph._repr_mimebundle_()  # type: ignore[misc]
        assert metadata["image/svg+xml"]["unconfined"]
        assert bundle["image/png"]
