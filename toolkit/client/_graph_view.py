"""Graph views: workflows, submitted or not, plans, and the lineage of an artifact."""

import base64
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from toolkit.client._record_view import Member, RecordView
from toolkit.contract.artifacts import Artifact, Lineage, LineageJob
from toolkit.contract.short_tracebacks import UnknownNodeError
from toolkit.contract.workflows import Node, WorkflowRecord
from toolkit.display.text import format_seconds
from toolkit.display.theme import read_svg_width
from toolkit.display.workflow import timeline
from toolkit.display.workflow.boxes import MAX_ROOMY_BOXES, measure_duration_s
from toolkit.display.workflow.svg import draw_workflow_svg, format_workflow_mermaid

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CELL_WIDTH = 900  # pixels that a notebook has room for
MimeBundle = dict[str, Any] | tuple[dict[str, Any], dict[str, Any]]


class GraphView:
    """A graph of nodes, which a notebook shows as a picture; `graph[id]` is one of its nodes."""

    planned = False  # whether its nodes have not run yet

    def _make_title(self) -> str:
        raise NotImplementedError

    def _list_nodes(self) -> Sequence[Node]:
        raise NotImplementedError

    def _describe_cost(self) -> str:
        """Describe the cost so far in words; empty for a graph that does not run."""
        return ""

    def picture(self) -> str:
        """Draw the graph as SVG: equal graphs give equal bytes."""
        return draw_workflow_svg(
            self._make_title(), self._list_nodes(), planned=self.planned, cost=self._describe_cost()
        )

    def plot(self, ax: "Axes | None" = None) -> "Figure":
        """Draw the graph by matplotlib, on axes given or on a figure of its own."""
        from toolkit.display.plots import draw_workflow_figure

        return draw_workflow_figure(
            self._make_title(),
            self._list_nodes(),
            ax,
            planned=self.planned,
            cost=self._describe_cost(),
        )

    def to_mermaid(self) -> str:
        """Return the graph as mermaid text."""
        return format_workflow_mermaid(self._list_nodes())

    def to_networkx(self) -> "nx.DiGraph[str]":
        """Return the graph as a networkx graph, with edges from a dependency to its dependent."""
        import networkx as nx

        graph: nx.DiGraph[str] = nx.DiGraph()
        for node in self._list_nodes():
            graph.add_node(node.id, capability=node.capability)
            if not self.planned:
                graph.nodes[node.id].update(
                    status=node.status,
                    provider=node.provider,
                    cost_usd=node.cost_usd,
                    seconds=measure_duration_s(node),
                    retry_count=node.retry_count,
                )
            graph.add_edges_from((upstream, node.id) for upstream in node.depends_on)
        return graph

    def __getitem__(self, key: str) -> Node:
        for node in self._list_nodes():
            if node.id == key:
                return node
        raise UnknownNodeError(key, [node.id for node in self._list_nodes()])

    def __iter__(self) -> Iterator[Node]:
        return iter(self._list_nodes())

    def _ipython_key_completions_(self) -> list[str]:
        return [node.id for node in self._list_nodes()]

    def _mime_(self) -> tuple[str, str]:
        """Return only HTML for marimo, which would show each picture of a MIME bundle in a tab."""
        empty = f"<code>{escape(repr(self))}</code>"
        return "text/html", self.picture() if self._list_nodes() else empty

    def _repr_mimebundle_(self, **_: object) -> MimeBundle:
        nodes = self._list_nodes()
        if not nodes:
            return {"text/plain": repr(self)}
        return _make_bundle(repr(self), self.picture(), self.plot, len(nodes))


class LineageView(GraphView, RecordView[Lineage]):
    """The jobs and artifacts that an artifact came from."""

    noun = "Lineage"

    jobs = Member[list[LineageJob]]("The jobs that made the artifact and its inputs, last first.")
    artifacts = Member[list[Artifact]]("The artifact itself, then those that it was made from.")

    def _list_rows(self) -> Sequence[BaseModel]:
        return self.jobs

    def __repr__(self) -> str:
        counts = f"{len(self.jobs)} jobs, {len(self.artifacts)} artifacts"
        return f"<Lineage of {self.id}: {counts}>"

    def _make_title(self) -> str:
        return f"Lineage of {self.id}"

    def _list_nodes(self) -> Sequence[Node]:
        """Return a node for each job, the first made on the left, named as in its workflow."""
        counts = Counter(job.node_id for job in self.jobs)
        names = {
            job.artifact_id: job.node_id if job.node_id and counts[job.node_id] == 1 else job.id
            for job in self.jobs
        }
        return [
            Node(
                id=names[job.artifact_id],
                capability=job.capability,
                depends_on=[
                    names[source_id]
                    for source_id in dict.fromkeys(job.from_artifacts.values())
                    if source_id in names
                ],
                status="completed",
                job_id=job.id,
                artifact_id=job.artifact_id,
                provider=job.provider,
                cached_from=job.cached_from,
            )
            for job in reversed(self.jobs)
        ]


class TimelineView(RecordView[WorkflowRecord]):
    """A Gantt chart of when each node of a workflow ran; grey dots mark waiting."""

    noun = "Timeline"

    @property
    def seconds(self) -> float:
        """The seconds from the submission to the last known event."""
        return timeline.measure_span_s(timeline.build_bars(self.record))

    def picture(self) -> str:
        """Draw the chart as SVG: equal timelines give equal bytes."""
        return timeline.draw_timeline_svg(self.record)

    def plot(self, ax: "Axes | None" = None) -> "Figure":
        """Draw the chart by matplotlib, on axes given or on a figure of its own."""
        from toolkit.display.plots import draw_timeline_figure

        return draw_timeline_figure(self.record, ax)

    def to_dict(self) -> dict[str, object]:
        """Return the workflow's id, its seconds, and a bar for each node, as JSON values."""
        return {"id": self.id, "seconds": self.seconds, "bars": self._list_bars()}

    def to_frame(self) -> "pd.DataFrame":
        """Return a row for each node, in order of start; seconds since submission."""
        import pandas as pd

        return pd.DataFrame(self._list_bars())

    def _list_bars(self) -> list[dict[str, object]]:
        return [
            {
                "node": bar.node.id,
                "capability": bar.node.capability,
                "provider": bar.node.provider,
                "status": bar.node.status,
                "ready_s": bar.ready_s,
                "start_s": bar.start_s,
                "end_s": bar.end_s,
                "took_s": measure_duration_s(bar.node),
                "cost_usd": bar.node.cost_usd,
                "retry_count": bar.node.retry_count,
                "critical": bar.critical,
            }
            for bar in timeline.build_bars(self.record)
        ]

    def __repr__(self) -> str:
        count = len(self.record.nodes)
        return f"<Timeline of {self.id}: {count} nodes in {format_seconds(self.seconds)}>"

    def _mime_(self) -> tuple[str, str]:
        """Return only HTML for marimo, which would show each picture of a MIME bundle in a tab."""
        return "text/html", self.picture()

    def _repr_mimebundle_(self, **_: object) -> MimeBundle:
        return _make_bundle(repr(self), self.picture(), self.plot, len(self.record.nodes))


def make_planned_nodes(nodes: Sequence[Mapping[str, Any]]) -> list[Node]:
    """Convert nodes of a workflow or plan that has not run to `Node` records."""
    return [
        Node(
            id=node["id"],
            capability=node["capability"],
            depends_on=node["depends_on"],
            input=node["input"],
            optional=node.get("optional", False),
        )
        for node in nodes
    ]


def _make_bundle(text: str, svg: str, plot: Any, count: int) -> MimeBundle:
    """Build a MIME bundle with a picture for every reader; a large picture scrolls in a notebook.

    Notebooks show the SVG. An SVG that is wider than a cell scrolls, because its labels would
    shrink with it. The PNG is for readers without SVG (mail, documents). A large graph has no PNG,
    because it would take seconds, and be too coarse to read.
    """
    bundle = {"text/plain": text, "image/svg+xml": svg}
    if count <= MAX_ROOMY_BOXES:
        bundle["image/png"] = base64.b64encode(plot()._repr_png_()).decode("ascii")
    if read_svg_width(svg) <= CELL_WIDTH:
        return bundle
    return bundle, {"image/svg+xml": {"unconfined": True}}
