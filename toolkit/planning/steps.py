"""The steps of planning and review that take CPU time, as a worker process calls them.

Their cost follows from texts that callers and models write, so they never run on an event loop.
They take and return plain values: capabilities travel as documents, records as JSON.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from toolkit.contract.plans import Constraints, PlanNode
from toolkit.planning.capability_documents import describe_capabilities, rebuild_capabilities
from toolkit.planning.model_reply import ReadPlan, read_plan_reply
from toolkit.planning.plan_draft import PlanDraft, PlannerView
from toolkit.planning.plan_validator import PlanRules, find_plan_faults
from toolkit.planning.review.evidence import Evidence, ReviewIssue
from toolkit.planning.review.judge import JudgeBrief, Judgement, read_answer
from toolkit.planning.review.reviewer import find_issues
from toolkit.plugins import Blob, Capability

DRAFT: TypeAdapter[PlanDraft] = TypeAdapter(PlanDraft)
NODES: TypeAdapter[list[PlanNode]] = TypeAdapter(list[PlanNode])
READ_PLAN: TypeAdapter[ReadPlan] = TypeAdapter(ReadPlan)
ISSUES: TypeAdapter[list[ReviewIssue]] = TypeAdapter(list[ReviewIssue])
JUDGEMENT: TypeAdapter[Judgement] = TypeAdapter(Judgement)
BRIEF: TypeAdapter[JudgeBrief] = TypeAdapter(JudgeBrief)
_CACHED_DOCUMENTS = 64


def prepare_worker() -> None:
    """Import and compile everything that a first plan and a first review need."""
    import toolkit.planning.review.node_checks  # noqa: F401 - slow to import
    from toolkit.planning.keywords.planner import make_plan

    make_plan("A poem about tides", Constraints(), PlannerView((), frozenset(), {}))


def write_view(view: PlannerView) -> str:
    """Convert a planner's view of an account to JSON text."""
    return json.dumps(
        {
            "capabilities": describe_capabilities(view.capabilities),
            "connected": sorted(view.connected),
            "providers": {name: sorted(ids) for name, ids in view.providers.items()},
        }
    )


@lru_cache(maxsize=_CACHED_DOCUMENTS)
def _read_view(text: str) -> PlannerView:
    document = json.loads(text)
    return PlannerView(
        rebuild_capabilities(document["capabilities"]),
        frozenset(document["connected"]),
        {name: frozenset(ids) for name, ids in document["providers"].items()},
    )


def write_rules(rules: PlanRules) -> str:
    """Convert the rules that plans are validated against to JSON text."""
    unique = {id(capability): capability for capability in rules.capabilities.values()}
    places = {key: n for n, key in enumerate(unique)}
    return json.dumps(
        {
            "capabilities": describe_capabilities(unique.values()),
            "names": {
                name: places[id(capability)] for name, capability in rules.capabilities.items()
            },
            "allowed": None if rules.allowed is None else sorted(rules.allowed),
        }
    )


@lru_cache(maxsize=_CACHED_DOCUMENTS)
def _read_rules(text: str) -> PlanRules:
    document = json.loads(text)
    capabilities = rebuild_capabilities(document["capabilities"])
    allowed = document["allowed"]
    return PlanRules(
        {name: capabilities[place] for name, place in document["names"].items()},
        None if allowed is None else frozenset(allowed),
    )


def plan_objective(objective: str, constraints: str, view: str) -> bytes:
    """Plan an objective by keywords, and return the draft as JSON."""
    from toolkit.planning.keywords.planner import make_plan  # the grammars are slow to compile

    limits = Constraints.model_validate_json(constraints)
    return DRAFT.dump_json(make_plan(objective, limits, _read_view(view)))


def read_reply(text: str, objective: str, view: str, rules: str) -> bytes:
    """Read a model's plan, and return it with its faults as JSON."""
    read = read_plan_reply(text, objective, _read_view(view), _read_rules(rules))
    return READ_PLAN.dump_json(read)


def find_faults(nodes: bytes, deliverables: Sequence[str], rules: str) -> list[tuple[str, str]]:
    """Find every fault of a plan, as paths and messages."""
    faults = find_plan_faults(NODES.validate_json(nodes), deliverables, _read_rules(rules))
    return [(fault.path, fault.message) for fault in faults]


def read_judgement(text: str, brief: str) -> bytes:
    """Read a judge's answer, and return its proven findings as JSON.

    Raises:
        ValueError: the answer is not the JSON that was asked for.
    """
    return JUDGEMENT.dump_json(read_answer(text, BRIEF.validate_json(brief)))


def check_results(
    objective: str,
    capabilities: str,
    evidence: Sequence[Mapping[str, Any]],
    deliverables: Sequence[str],
    attempt: int,
) -> bytes:
    """Check the results of a task's workflow, and return the issues as JSON."""
    catalog = _read_capabilities(capabilities)
    issues = find_issues(
        objective,
        [_read_evidence(document, catalog) for document in evidence],
        deliverables,
        attempt=attempt,
    )
    return ISSUES.dump_json(issues)


def write_evidence(evidence: Sequence[Evidence]) -> tuple[str, list[dict[str, Any]]]:
    """Convert the evidence of a review to plain values, which another process can read.

    Returns:
        its capabilities as JSON, and a document for each result.
    """
    unique = {id(item.capability): item.capability for item in evidence}
    places = {key: n for n, key in enumerate(unique)}
    documents = [
        {
            **{attribute.name: getattr(item, attribute.name) for attribute in fields(item)},
            "node": item.node.model_dump_json(),
            "capability": places[id(item.capability)],
            "blob": _write_blob(item.blob),
            "pictures": {name: _write_blob(blob) for name, blob in item.pictures.items()},
        }
        for item in evidence
    ]
    return json.dumps(describe_capabilities(unique.values())), documents


@lru_cache(maxsize=_CACHED_DOCUMENTS)
def _read_capabilities(text: str) -> Sequence[Capability]:
    return rebuild_capabilities(json.loads(text))


def _read_evidence(document: Mapping[str, Any], catalog: Sequence[Capability]) -> Evidence:
    sequences = ("instructions", "remarks", "other_providers")
    rebuilt: dict[str, Any] = {
        "node": PlanNode.model_validate_json(document["node"]),
        "capability": catalog[document["capability"]],
        "blob": _read_blob(document["blob"]),
        "pictures": {name: _read_blob(blob) for name, blob in document["pictures"].items()},
        **{name: tuple(document[name]) for name in sequences},
    }
    return Evidence(**{**document, **rebuilt})


def _write_blob(blob: Blob | None) -> tuple[bytes, str, str] | None:
    return None if blob is None else (blob.data, blob.media_type, json.dumps(dict(blob.metadata)))


def _read_blob(document: tuple[bytes, str, str] | None) -> Blob | None:
    if document is None:
        return None
    data, media_type, metadata = document
    return Blob(data, media_type, json.loads(metadata))
