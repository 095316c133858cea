"""Reviews of artifacts that somebody made, good and spoiled ones: how many are right.

Run `python -m benchmarks.review`; `--kind text` for one kind of artifact, `--split work` for one
half of the set, `--show work-failures` for what went wrong. Of the half that figures are told of,
`report`, no line is ever shown: checks that were worked out on it would make its figures
worthless. Last come the tables of `docs/planning.md`: each kind of artifact, each kind of damage,
and each check with what it brings: what would pass without it.
"""

import argparse
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks._report import report
from benchmarks.sets.review.makers import make
from toolkit.capabilities import load_capabilities
from toolkit.contract.plans import PlanNode
from toolkit.planning.review.evidence import Evidence
from toolkit.planning.review.issues import ReviewIssue
from toolkit.planning.review.reviewer import find_issues, judge_issues, review_results
from toolkit.plugins import Blob, Capability

SETS = Path(__file__).parent / "sets/review"
# Artifacts in pairs, and good ones that have no spoiled one beside them.
PAIRS, GOOD = SETS / "pairs.jsonl", SETS / "good.jsonl"
KINDS = ("text", "sound", "picture", "card", "research")
RETRIES = 2  # left to a task that is reviewed for the first time
# The shares that may be wrong: spoiled ones that pass, good ones that fail.
MOST_PASSED, MOST_FAILED = 0.02, 0.01
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """An artifact, and how it was judged.

    Attributes:
        damage: what is wrong with it; empty if nothing is.
        visible: whether a program can see that.
        seconds: what the review took.
        needed: the checks without each of which it would have passed.
    """

    id: str
    split: str
    kind: str
    lang: str
    damage: str
    visible: bool
    passed: bool
    seconds: float
    issues: tuple[ReviewIssue, ...]
    needed: frozenset[str]

    @property
    def found(self) -> frozenset[str]:
        """The checks that found something."""
        return frozenset(issue.check for issue in self.issues)


@cache
def index_capabilities() -> dict[str, Capability]:
    """Index every standard capability by its id."""
    return {capability.id: capability for capability in load_capabilities()}


def read_lines(split: str, kinds: Sequence[str] = KINDS) -> list[Row]:
    """Read one half of the set: the pairs, then the good artifacts without a spoiled one."""
    rows = [row for path in (PAIRS, GOOD) for row in path.read_text("utf-8").splitlines()]
    lines = map(json.loads, rows)
    return [line for line in lines if line["split"] == split and line["kind"] in kinds]


def build_blob(artifact: Row) -> Blob:
    """Build the bytes of an artifact, with the media type that its record claims."""
    if "maker" in artifact:
        made = make(artifact)
        return Blob(made.data, artifact.get("media_type", made.media_type))
    if "text" in artifact:
        return Blob(artifact["text"].encode(), artifact["media_type"])
    data = json.dumps(artifact["value"], ensure_ascii=False).encode()
    return Blob(data, artifact["media_type"])


def build_evidence(line: Row, artifact: str, output: str) -> Evidence:
    """Build the evidence that one artifact of a pair is."""
    capability = index_capabilities()[line["node"]["capability"]]
    given = dict(line["node"]["input"])
    blobs = line.get("blobs", {})
    return Evidence(
        node=PlanNode(id="made", capability=capability.id, input=given),
        capability=capability,
        status="completed",
        output=line[output],
        blob=build_blob(line[artifact]),
        error_code=None,
        upstream_text=None,
        pictures={
            name: build_blob(blobs[value])
            for name, value in given.items()
            if isinstance(value, str) and value in blobs
        },
    )


def review_artifact(line: Row, *, good: bool) -> Outcome:
    """Review one artifact of a pair, as a task's only result."""
    evidence = build_evidence(line, *(("good", "output") if good else ("bad", "bad_output")))
    objective = line["objective"]
    started = time.perf_counter()
    verdict = review_results(objective, [evidence], ["made"], attempt=0, retries_left=RETRIES)
    took = time.perf_counter() - started
    issues = find_issues(objective, [evidence], ["made"], attempt=0)
    passed = verdict.decision == "pass"
    return Outcome(
        line["id"],
        line["split"],
        line["kind"],
        line["lang"],
        "" if good else line["spoiled"],
        line.get("visible", True),
        passed,
        took,
        tuple(issues),
        frozenset() if passed else frozenset(_find_needed(issues, evidence)),
    )


def _find_needed(issues: Sequence[ReviewIssue], evidence: Evidence) -> Iterator[str]:
    for name in {issue.check for issue in issues}:
        others = [issue for issue in issues if issue.check != name]
        if judge_issues(others, [evidence], attempt=0, retries_left=RETRIES).decision == "pass":
            yield name


def review_lines(lines: Iterable[Row]) -> list[Outcome]:
    """Review both artifacts of each pair, and the one of a line that has no other."""
    return [
        review_artifact(line, good=good)
        for line in lines
        for good in (True, False)
        if good or "bad" in line
    ]


def find_share(answers: Iterable[bool]) -> float:
    """Find the share of what is true; none of nothing is."""
    every = list(answers)
    return sum(every) / len(every) if every else 0.0


def tell_shares(name: str, outcomes: Sequence[Outcome], *, judged: bool) -> bool:
    """Tell which shares of spoiled artifacts pass and of good ones fail."""
    visible = [o for o in outcomes if o.damage and o.visible]
    hidden = [o for o in outcomes if o.damage and not o.visible]
    good = [o for o in outcomes if not o.damage]
    most_passed, most_failed = (MOST_PASSED, MOST_FAILED) if judged else (None, None)
    kept = [
        report(
            f"review.{name}.spoiled_passed", find_share(o.passed for o in visible), "share",
            floor=0, limit=most_passed, of=len(visible),
        ),
        report(
            f"review.{name}.good_failed", find_share(not o.passed for o in good), "share",
            floor=0, limit=most_failed, of=len(good),
        ),
        report(
            f"review.{name}.unseen_passed", find_share(o.passed for o in hidden), "share",
            floor=0, limit=None, of=len(hidden),
        ),
    ]  # fmt: skip
    return all(kept)


def tell_times(outcomes: Sequence[Outcome]) -> None:
    """Tell how long the review of one artifact takes, by kind: the median, and the longest."""
    for kind in dict.fromkeys(o.kind for o in outcomes):
        took = [1000 * o.seconds for o in outcomes if o.kind == kind]
        report(f"review.{kind}.time", statistics.median(took), "ms", floor=0, limit=None)
        report(f"review.{kind}.time_max", max(took), "ms", floor=0, limit=None)


def show_failures(outcomes: Iterable[Outcome]) -> None:
    """Print what was judged wrongly; of the half to work on alone."""
    for outcome in outcomes:
        is_right = outcome.passed != bool(outcome.damage and outcome.visible)
        if outcome.split != "work" or is_right or (outcome.damage and not outcome.visible):
            continue
        wrong = f"PASSES though {outcome.damage}" if outcome.damage else "FAILS though good"
        print(f"\n{outcome.id} ({outcome.lang}) {wrong}", file=sys.stderr)
        for issue in outcome.issues:
            blocks = "blocks" if issue.is_blocking else f"-{issue.weight}"
            print(f"  {issue.check} ({blocks}): {issue.message}", file=sys.stderr)


def print_tables(outcomes: Sequence[Outcome]) -> None:
    """Print figures as the tables of `docs/planning.md`."""
    _print_table(
        ["artifact", "spoiled", "of them passed", "good", "of them failed", "median ms"],
        (
            (
                kind,
                len(seen := [o for o in outcomes if o.kind == kind and o.damage and o.visible]),
                sum(o.passed for o in seen),
                len(good := [o for o in outcomes if o.kind == kind and not o.damage]),
                sum(not o.passed for o in good),
                round(statistics.median(1000 * o.seconds for o in (*seen, *good)), 1),
            )
            for kind in dict.fromkeys(o.kind for o in outcomes)
        ),
    )
    damaged = [o for o in outcomes if o.damage and o.visible]
    passed = Counter(o.damage for o in damaged if o.passed)
    _print_table(
        ["damage", "artifacts", "of them passed"],
        ((name, n, passed[name]) for name, n in Counter(o.damage for o in damaged).items()),
    )  # fmt: skip
    found = Counter(name for o in damaged for name in o.found)
    alone = Counter(name for o in damaged for name in o.needed)
    wrong = Counter(name for o in outcomes if not o.damage for name in o.needed)
    _print_table(
        ["check", "spoiled found", "would pass without it", "good failed by it"],
        ((name, found[name], alone[name], wrong[name]) for name in sorted({*found, *wrong})),
    )


def _print_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    print("\n| " + " | ".join(heads) + " |")
    print("|---|" + "---:|" * (len(heads) - 1))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")


def main(argv: Sequence[str] | None = None) -> int:
    """Review every artifact; exit code 1 if more is wrong than may be."""
    parser = argparse.ArgumentParser(prog="benchmarks.review")
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--split", choices=("work", "report"), default="report")
    parser.add_argument("--show", choices=("work-failures",))
    args = parser.parse_args(argv)
    split = "work" if args.show else args.split
    outcomes = review_lines(read_lines(split, args.kind or KINDS))
    if args.show:
        show_failures(outcomes)
    kept = tell_shares("all", outcomes, judged=True)
    for kind in dict.fromkeys(o.kind for o in outcomes):
        tell_shares(kind, [o for o in outcomes if o.kind == kind], judged=False)
    tell_times(outcomes)
    print_tables(outcomes)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
