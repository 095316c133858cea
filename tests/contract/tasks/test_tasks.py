"""Tasks: an objective is planned, run and reviewed."""

import pytest

from tests.support.views import render_views
from toolkit import Client
from toolkit.cli.output import ClientOutput
from toolkit.display.text import format_event
from toolkit.notebook import TaskReview, WorkflowGraph

pytestmark = [pytest.mark.embedded, pytest.mark.sqlite("other tests have its statements")]


def test_names_the_missing_connections_of_each_capability(
    bare: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given no connection, then every view of plan and task names the providers to connect."""
    objective = "A social card with a narration about tea, and an image of a kettle"
    plan = bare.plans.create(objective)
    gaps = {gap.capability: gap.any_of for gap in plan.missing}
    sources = {record.id: record.record.source for record in bare.capabilities.list()}
    for capability, any_of in gaps.items():
        assert sorted(any_of) == sorted(sources[capability].routing.allowed_connections)
        assert any_of[0] == sources[capability].routing.default_provider
    assert {"speech.generate", "image.generate"} <= gaps.keys()
    assert set(plan.missing_connections) == {name for any_of in gaps.values() for name in any_of}
    assert not plan.executable
    task = bare.tasks.create(objective).wait(check=False)
    assert (task.status, task.missing) == ("blocked", plan.missing)
    assert (task.cost_usd, task.cost_incurred_usd) == (0, 0)
    graph, review = WorkflowGraph(task), TaskReview(task)
    texts = [render_views(plan), render_views(task), format_event(task.events()[-1])]
    texts += [graph.headline.value, review.headline.value]
    for work in (plan, task):
        ClientOutput(bare).print_record(work)
        texts.append(capsys.readouterr().out)
    for text in texts:
        assert "speech.generate needs a connection to minimax or elevenlabs" in text
    graph.close()
    review.close()
    bare.connections.create("elevenlabs", "environment", "ELEVENLABS_API_KEY")
    capabilities = {gap.capability for gap in bare.plans.create(objective).missing}
    assert capabilities == gaps.keys() - {"speech.generate"}
    (gap,) = bare.plans.create("A video about tea").missing
    assert (gap.capability, gap.any_of) == ("video.generate", [])
