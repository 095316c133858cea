"""The metrics in the dashboard and the alerts, compared with the metrics of a server."""

import json
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tests.observability.conftest import WatchedService
from tests.support.timing import wait_until_async
from toolkit.settings import Settings

DOCS = Path(__file__).parents[2] / "docs"
ALERTS = yaml.safe_load((DOCS / "deploy" / "alerts.yaml").read_text(encoding="utf-8"))
PANELS = json.loads((DOCS / "deploy" / "dashboard.json").read_text(encoding="utf-8"))["panels"]
SELECTOR = re.compile(r"\b(toolkit_[a-z_]+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)(=~|!~|!=|=)"([^"]*)"')
GROUPED = re.compile(r"\bby \(([^)]*)\)")
NAMED = re.compile(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}")  # in a legend or a summary
OF_PROMETHEUS = {"instance"}  # a label that Prometheus adds to each series
RUN = {"target": "capability", "name": "llm.generate", "input": {"objective": "Tea"}}

Samples = dict[str, list[dict[str, str]]]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings of an engine that carries out one job at a time."""
    return settings.model_copy(update={"max_concurrent_jobs": 1})


def list_expressions() -> list[tuple[str, str]]:
    """Return each expression with its legend or summary."""
    rules = [rule for group in ALERTS["groups"] for rule in group["rules"]]
    alerts = [(rule["expr"], rule["annotations"]["summary"]) for rule in rules]
    targets = [target for panel in PANELS for target in panel["targets"]]
    return alerts + [(target["expr"], target.get("legendFormat", "")) for target in targets]


def split_labels(expression: str) -> set[str]:
    """Return the labels that an expression groups by."""
    return {name.strip() for names in GROUPED.findall(expression) for name in names.split(",")}


def read_samples(registry: CollectorRegistry) -> Samples:
    """Return the labels of all scraped series, by the name of the series."""
    samples: Samples = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            samples.setdefault(sample.name, []).append(dict(sample.labels))
    return samples


async def see_everything(watched: WatchedService) -> Samples:
    """Cause each kind of event: success, failure and rejection."""
    workflow = await watched.chain()
    await watched.send("GET", f"/v1/workflows/{workflow['id']}/events")
    for status in (400, 503):
        watched.faults.clear()
        watched.faults.fail("minimax", status=status)
        for _ in range(2):
            await watched.send("POST", "/v1/runs", json=RUN, headers={"Prefer": "wait=1"})
    watched.engine.drain()
    refused = await watched.send("POST", "/v1/runs", json=RUN)
    assert refused.status_code == 503
    return read_samples(watched.metrics.registry)


async def test_each_label_of_an_expression_exists(watched: WatchedService) -> None:
    """Given all events, then the series have the labels and values of the expressions."""
    samples = await see_everything(watched)
    checked = 0
    for expression, _ in list_expressions():
        grouped = split_labels(expression)
        for name, matchers in SELECTOR.findall(expression):
            assert name in samples, expression
            labels = set.intersection(*map(set, samples[name]))
            assert grouped - OF_PROMETHEUS <= labels, expression
            for label, operator, pattern in MATCHER.findall(matchers):
                regex = pattern if operator.endswith("~") else re.escape(pattern)
                values = {sample.get(label, "") for sample in samples[name]}
                assert any(re.fullmatch(regex, value) for value in values), expression
                checked += 1
    assert checked >= 4


def test_each_text_names_labels_of_its_expression() -> None:
    """Given a legend or a summary, then each label that it names is a label of its series."""
    for expression, text in list_expressions():
        is_scraped = expression.startswith("up{")
        labels = split_labels(expression) or (OF_PROMETHEUS if is_scraped else set())
        assert set(NAMED.findall(text)) <= labels, expression


async def test_the_alert_ignores_the_faults_of_callers(watched: WatchedService) -> None:
    """Given rejected and failed calls, then the alert counts only the failed calls."""
    samples = await see_everything(watched)
    rules = " ".join(expression for expression, _ in list_expressions())
    (pattern,) = re.findall(r'outcome!~"([^"]*)"', rules)
    outcomes = {sample["outcome"] for sample in samples["toolkit_vendor_calls_total"]}
    assert {"completed", "PROVIDER_REJECTED"} <= outcomes
    faults = [outcome for outcome in outcomes if not re.fullmatch(pattern, outcome)]
    assert faults == ["PROVIDER_UNAVAILABLE"]


def test_the_page_has_the_scrape_job_of_the_alerts() -> None:
    """Given the name of the scrape job in the alerts, then the page uses it."""
    (job,) = {
        name
        for expression, _ in list_expressions()
        for name in re.findall(r'job="(\w+)"', expression)
    }
    text = (DOCS / "observability.md").read_text(encoding="utf-8")
    assert f"  - job_name: {job}\n" in text


async def test_the_alert_sees_jobs_that_never_end(watched: WatchedService) -> None:
    """Given a job that does not end, then the alert counts the jobs behind it."""
    rules = {rule["alert"]: rule["expr"] for group in ALERTS["groups"] for rule in group["rules"]}
    assert rules["JobsWait"].startswith("sum by (instance) (toolkit_jobs_waiting)")
    assert " or 0 * " in rules["JobsWait"], "there is no rate until a job has ended"
    watched.faults.latency("minimax", mean_ms=60_000)
    for _ in range(3):
        await watched.send("POST", "/v1/runs", json=RUN)
    await wait_until_async(lambda: watched.value("jobs_running") == 1)
    await wait_until_async(lambda: watched.value("jobs_waiting") == 2)
    assert "toolkit_jobs_total" not in read_samples(watched.metrics.registry)
