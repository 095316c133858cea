"""What the dashboard and the alerts ask for, against what there is to be seen."""

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
NAMED = re.compile(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}")  # of a legend, or of a summary
OF_PROMETHEUS = {"instance"}  # a label that each scraped series gets
RUN = {"target": "capability", "name": "llm.generate", "input": {"objective": "Tea"}}

Samples = dict[str, list[dict[str, str]]]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings of an engine that carries out one job at a time."""
    return settings.model_copy(update={"max_concurrent_jobs": 1})


def list_asked() -> list[tuple[str, str]]:
    """Each expression, with the text that shows what it says."""
    rules = [rule for group in ALERTS["groups"] for rule in group["rules"]]
    asked = [(rule["expr"], rule["annotations"]["summary"]) for rule in rules]
    targets = [target for panel in PANELS for target in panel["targets"]]
    return asked + [(each["expr"], each.get("legendFormat", "")) for each in targets]


def read_samples(registry: CollectorRegistry) -> Samples:
    """The labels of all series that a scraper is shown, by the name of the series."""
    samples: Samples = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            samples.setdefault(sample.name, []).append(dict(sample.labels))
    return samples


async def see_everything(watched: WatchedService) -> Samples:
    """Have each thing happen that is watched: what succeeds, what fails, what is refused."""
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


def does_match(how: str, pattern: str, value: str) -> bool:
    """Whether a matcher, or what it denies, has a value."""
    return bool(re.fullmatch(pattern, value)) if how.endswith("~") else pattern == value


async def test_each_label_is_shown(watched: WatchedService) -> None:
    """Given all that is watched, then the series have the labels and values that are asked for."""
    samples = await see_everything(watched)
    checked = 0
    for asked, _ in list_asked():
        grouped = {name.strip() for names in GROUPED.findall(asked) for name in names.split(",")}
        for name, matchers in SELECTOR.findall(asked):
            assert name in samples, asked
            labels = set.intersection(*map(set, samples[name]))
            assert grouped - OF_PROMETHEUS <= labels, asked
            for label, how, pattern in MATCHER.findall(matchers):
                values = {each.get(label, "") for each in samples[name]}
                assert any(does_match(how, pattern, value) for value in values), asked
                checked += 1
    assert checked >= 4


def test_each_text_names_what_its_expression_keeps() -> None:
    """Given a legend or a summary, then each label that it names is one of its series."""
    for asked, text in list_asked():
        grouped = {name.strip() for names in GROUPED.findall(asked) for name in names.split(",")}
        kept = grouped or (OF_PROMETHEUS if asked.startswith("up{") else set())
        assert set(NAMED.findall(text)) <= kept, asked


async def test_what_a_caller_did_is_no_fault_of_a_provider(watched: WatchedService) -> None:
    """Given calls that were refused and calls that failed, then the alert counts the latter."""
    samples = await see_everything(watched)
    (asked,) = [asked for asked, _ in list_asked() if "outcome!~" in asked]
    (pattern,) = re.findall(r'outcome!~"([^"]*)"', asked)
    outcomes = {each["outcome"] for each in samples["toolkit_vendor_calls_total"]}
    assert {"completed", "PROVIDER_REJECTED", "PROVIDER_UNAVAILABLE"} <= outcomes
    assert {each for each in outcomes if not re.fullmatch(pattern, each)} == {
        "PROVIDER_UNAVAILABLE"
    }


def test_the_page_has_the_job_that_the_alerts_ask_for() -> None:
    """Given the alerts' name of the scrape job, then the page's job is called so."""
    (job,) = {name for asked, _ in list_asked() for name in re.findall(r'job="(\w+)"', asked)}
    text = (DOCS / "observability.md").read_text(encoding="utf-8")
    assert f"  - job_name: {job}\n" in text


async def test_jobs_that_never_end_are_told_of(watched: WatchedService) -> None:
    """Given a job that does not end, then those behind it are in what the alert looks at."""
    rules = {rule["alert"]: rule["expr"] for group in ALERTS["groups"] for rule in group["rules"]}
    assert rules["JobsWait"].startswith("sum by (instance) (toolkit_jobs_waiting)")
    assert " or 0 * " in rules["JobsWait"], "where none has ended yet there is no rate"
    watched.faults.latency("minimax", mean_ms=60_000)
    for _ in range(3):
        await watched.send("POST", "/v1/runs", json=RUN)
    await wait_until_async(lambda: watched.value("jobs_running") == 1)
    await wait_until_async(lambda: watched.value("jobs_waiting") == 2)
    assert "toolkit_jobs_total" not in read_samples(watched.metrics.registry)
