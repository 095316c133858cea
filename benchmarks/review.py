"""Reviews of a written set of good and spoiled artifacts: the shares of wrong reviews.

Run `python -m benchmarks.review`; `--kind text` selects a kind of artifact, `--split work` a half
of the set, and `--show work-failures` prints the wrong reviews. No line of the half for the
figures, `report`, is ever shown, because checks that were tuned on it would make its figures
worthless.

Three reviewers are measured: the *hard* checks alone, on damage that they are for; all *checks*, as
they decide if no judge is asked; and the *judge*, with recorded replies of a language model, at the
first try and without a look at the good artifact. The plan's expectations of a text are the
requirements of its brief, as the set lists them (`asked`).
"""

import argparse
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks._report import report
from benchmarks.sets.review.makers import make
from toolkit.capabilities import load_capabilities
from toolkit.contract.plans import Expect, PlanNode
from toolkit.planning.llm_planner import AMOUNTS
from toolkit.planning.review.evidence import Evidence, ReviewIssue
from toolkit.planning.review.judge import build_brief, make_issues, read_answer
from toolkit.planning.review.reviewer import find_issues, judge_issues
from toolkit.plugins import Blob, Capability

SETS = Path(__file__).parent / "sets/review"
# Artifacts in pairs, and good artifacts without a spoiled version.
PAIRS, GOOD, JUDGEMENTS = SETS / "pairs.jsonl", SETS / "good.jsonl", SETS / "judgements.jsonl"
KINDS = ("text", "sound", "picture", "card", "research")
RETRIES = 2  # left to a task that is reviewed for the first time
# Maximum shares of wrong reviews: spoiled artifacts that pass, good artifacts that fail.
MAX_PASSED, MAX_FAILED = 0.02, 0.01
# The damage of texts that hard checks are for; a text that is cut off says so in its record.
HARD_DAMAGE = frozenset(
    (
        *("empty", "mojibake", "wrong script", "secret", "sources not cited", "wrong language"),
        *("too long", "too short", "wrong number of items", "wrong number of sentences"),
    )
)
HARD, CHECKS, JUDGE = "hard", "checks", "judge"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """An artifact, and its reviews.

    Attributes:
        damage: its damage; empty for a good artifact.
        is_hard: whether hard checks are for its damage.
        passes: whether each reviewer that was asked passes it.
        seconds: duration of the checks.
    """

    id: str
    split: str
    kind: str
    damage: str
    is_hard: bool
    passes: Mapping[str, bool]
    seconds: float
    issues: tuple[ReviewIssue, ...]

    def is_wrong(self, reviewer: str) -> bool:
        """Return whether a reviewer passes damage, or blocks a good artifact."""
        return self.passes[reviewer] == bool(self.damage)


@cache
def index_capabilities() -> dict[str, Capability]:
    """Index every standard capability by its id."""
    return {capability.id: capability for capability in load_capabilities()}


def read_lines(split: str, kinds: Sequence[str] = KINDS) -> list[Row]:
    """Read one half of the set: the pairs, then the good artifacts without a spoiled version."""
    rows = [row for path in (PAIRS, GOOD) for row in path.read_text("utf-8").splitlines()]
    lines = map(json.loads, rows)
    return [line for line in lines if line["split"] == split and line["kind"] in kinds]


def build_blob(artifact: Row) -> Blob:
    """Build the bytes of an artifact, with the media type that its record claims."""
    if "maker" in artifact:
        blob = make(artifact)
        return Blob(blob.data, artifact.get("media_type", blob.media_type))
    if "text" in artifact:
        return Blob(artifact["text"].encode(), artifact["media_type"])
    data = json.dumps(artifact["value"], ensure_ascii=False).encode()
    return Blob(data, artifact["media_type"])


def build_expect(required: Row) -> Expect:
    """Build a plan's expectations of a text, by the rules of the planner's prompt.

    A number of words without a limit is approximate: the text may differ by a fifth of it.
    """
    expect: dict[str, Any] = {name: required[name] for name in AMOUNTS if name in required}
    if isinstance(words := expect.get("words"), int):
        expect["words"] = [words * 0.8, words * 1.2]
    if isinstance(characters := expect.get("characters"), int):
        expect["characters"] = [0, characters]
    if "max_words" in required:
        expect["words"] = [0, required["max_words"]]
    if len(str(required.get("language", ""))) == 2:
        expect["language"] = required["language"]
    if required.get("form") in ("json", "csv", "html", "markdown", "plain"):
        expect["format"] = required["form"]
    return Expect.model_validate(expect)


def build_evidence(line: Row, artifact: str, output: str) -> Evidence:
    """Build the evidence of an artifact of a pair."""
    capability = index_capabilities()[line["node"]["capability"]]
    fields = dict(line["node"]["input"])
    blobs = line.get("blobs", {})
    return Evidence(
        node=PlanNode(
            id="made",
            capability=capability.id,
            input=fields,
            expect=build_expect(line.get("asked", {})),
        ),
        capability=capability,
        status="completed",
        output=line[output],
        blob=build_blob(line[artifact]),
        error_code=None,
        upstream_text=None,
        pictures={
            name: build_blob(blobs[value])
            for name, value in fields.items()
            if isinstance(value, str) and value in blobs
        },
    )


@cache
def read_judgements() -> dict[tuple[str, str], str]:
    """Read the recorded replies of the judge, by line and artifact."""
    if not JUDGEMENTS.exists():
        return {}
    rows = map(json.loads, JUDGEMENTS.read_text("utf-8").splitlines())
    return {(row["id"], row["artifact"]): row["reply"] for row in rows}


def review_artifact(line: Row, artifact: str) -> Outcome:
    """Review one artifact of a line, `good` or `bad`, as a task's only result."""
    is_good = artifact == "good"
    evidence = build_evidence(line, artifact, "output" if is_good else "bad_output")
    objective = line["objective"]
    started = time.perf_counter()
    issues = find_issues(objective, [evidence], ["made"], attempt=0)
    took = time.perf_counter() - started
    certain = [issue for issue in issues if not issue.is_hint]
    passes = {HARD: _passes(certain, evidence), CHECKS: _passes(issues, evidence)}
    reply = read_judgements().get((line["id"], artifact))
    if not passes[HARD]:  # the judge is not asked
        passes[JUDGE] = False  # nobody is asked
    elif reply is not None:
        brief = build_brief(objective, [evidence], [issue for issue in issues if issue.is_hint])
        proven = make_issues(read_answer(reply, brief))
        passes[JUDGE] = _passes([*certain, *proven], evidence)
    damage = "" if is_good else line["spoiled"]
    is_cut = damage == "cut off" and line["bad_output"].get("finish_reason") == "length"
    is_hard = damage in HARD_DAMAGE or is_cut or line["kind"] != "text"
    return Outcome(
        line["id"],
        line["split"],
        line["kind"],
        damage,
        is_hard and line.get("visible", True),
        passes,
        took,
        tuple(issues),
    )


def _passes(issues: Sequence[ReviewIssue], evidence: Evidence) -> bool:
    verdict = judge_issues(issues, [evidence], attempt=0, retries_left=RETRIES)
    return verdict.decision == "pass"


def review_lines(lines: Iterable[Row]) -> list[Outcome]:
    """Review both artifacts of each pair, and the good artifact of each other line."""
    return [
        review_artifact(line, artifact)
        for line in lines
        for artifact in ("good", "bad")
        if artifact in line
    ]


def report_shares(reviewer: str, outcomes: Sequence[Outcome]) -> bool:
    """Report a reviewer's shares of spoiled artifacts that pass, and good artifacts that fail."""
    reviewed = [o for o in outcomes if reviewer in o.passes]
    is_bound = reviewer != CHECKS  # without a judge, all checks are the best reviewer
    spoiled = [o for o in reviewed if o.damage and (o.is_hard or reviewer != HARD)]
    good = [o for o in reviewed if not o.damage]
    is_kept = True
    for name, group, max_share in (
        ("spoiled_passed", spoiled, MAX_PASSED),
        ("good_failed", good, MAX_FAILED),
    ):
        share = statistics.fmean(o.is_wrong(reviewer) for o in group) if group else 0.0
        limit = max_share if is_bound and group else None
        figure = f"review.{reviewer}.{name}"
        is_kept &= report(figure, share, "share", floor=0, limit=limit, of=len(group))
    return is_kept


def report_times(outcomes: Sequence[Outcome]) -> None:
    """Report the duration of an artifact's checks, by kind: the median and the maximum."""
    for kind in dict.fromkeys(o.kind for o in outcomes):
        took = [1000 * o.seconds for o in outcomes if o.kind == kind]
        report(f"review.{kind}.time", statistics.median(took), "ms", floor=0, limit=None)
        report(f"review.{kind}.time_max", max(took), "ms", floor=0, limit=None)


def show_failures(outcomes: Iterable[Outcome]) -> None:
    """Print the wrong reviews of all checks, but only in the half to work on."""
    for outcome in outcomes:
        is_shown = outcome.split == "work" and (outcome.is_hard or not outcome.damage)
        if not (is_shown and outcome.is_wrong(CHECKS)):
            continue
        wrong = f"PASSES though {outcome.damage}" if outcome.damage else "FAILS though good"
        print(f"\n{outcome.id} {wrong}", file=sys.stderr)
        for issue in outcome.issues:
            blocks = "blocks" if issue.is_blocking else f"-{issue.weight}"
            print(f"  {issue.check} ({blocks}): {issue.message}", file=sys.stderr)


def print_tables(outcomes: Sequence[Outcome]) -> None:
    """Print figures as the tables of `docs/planning.md`, and the totals by kind of damage."""
    rows = []
    for kind in dict.fromkeys(o.kind for o in outcomes):
        for reviewer in (HARD, CHECKS, JUDGE):
            reviewed = [o for o in outcomes if o.kind == kind and reviewer in o.passes]
            spoiled = [o for o in reviewed if o.damage and (o.is_hard or reviewer != HARD)]
            good = [o for o in reviewed if not o.damage]
            wrong = [sum(o.is_wrong(reviewer) for o in group) for group in (spoiled, good)]
            rows.append((kind, reviewer, len(spoiled), wrong[0], len(good), wrong[1]))
    _print_table(["artifact", "reviewer", "spoiled", "of them passed", "good", "failed"], rows)
    damages = Counter(o.damage for o in outcomes if o.damage)
    passed = {
        reviewer: Counter(o.damage for o in outcomes if o.damage and o.passes.get(reviewer))
        for reviewer in (HARD, CHECKS, JUDGE)
    }
    _print_table(
        ["damage", "artifacts", *(f"passed: {reviewer}" for reviewer in passed)],
        [(name, n, *(counts[name] for counts in passed.values())) for name, n in damages.items()],
    )
    hits = Counter(issue.check for o in outcomes if o.damage for issue in o.issues)
    false = Counter(issue.check for o in outcomes if not o.damage for issue in o.issues)
    _print_table(
        ["check", "finds in spoiled", "finds in good"],
        [(name, hits[name], false[name]) for name in sorted({*hits, *false})],
    )


def _print_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    print("\n| " + " | ".join(heads) + " |")
    print("|---|" + "---:|" * (len(heads) - 1))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")


def main(argv: Sequence[str] | None = None) -> int:
    """Review every artifact; the exit code is 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(prog="benchmarks.review")
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--split", choices=("work", "report"), default="report")
    parser.add_argument("--show", choices=("work-failures",))
    args = parser.parse_args(argv)
    split = "work" if args.show else args.split
    outcomes = review_lines(read_lines(split, args.kind or KINDS))
    if args.show:
        show_failures(outcomes)
    results = [report_shares(reviewer, outcomes) for reviewer in (HARD, CHECKS, JUDGE)]
    report_times(outcomes)
    print_tables(outcomes)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
