"""Plans of objectives with hand-written correct plans: the share of correct plans.

Run `python -m benchmarks.planning`: the keyword planner, the recorded replies of a language model,
and the upper bound of the cost of planning by each provider's model. `--lang en` selects a
language, `--split work` a split of the set, and `--show` prints the errors of the keyword planner.
No line of the split for the figures, `report`, is ever shown, because figures of lines that the
planner was tuned on would be worthless. `--planner llm` plans by a language model;
`benchmarks/_language_model.py` documents its options. All standard capabilities are available and
all providers are connected.

The keyword planner abstains if it does not know every clause. So it has three figures: the share of
exact plans among the plans that it runs, the share of possible objectives that it runs, and the
share of impossible objectives that it runs as a different plan.
"""

import argparse
import json
import math
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from benchmarks._language_model import add_model_arguments, open_model_client, report_skipped
from benchmarks._planning_lines import (
    LANGUAGES,
    SETS,
    Graph,
    GraphNode,
    SetLine,
    can_lay,
    find_mappings,
    fold,
    read_lines,
)
from benchmarks._report import report, report_share
from toolkit import Client, ToolkitError
from toolkit.capabilities import load_capabilities
from toolkit.contract.errors import Detail
from toolkit.contract.plans import Constraints
from toolkit.engine.orchestration.model_calls import PREVIEW_LIMIT_USD
from toolkit.planning.keywords.planner import make_plan
from toolkit.planning.keywords.words import CODES, choose_vocabulary, load_vocabulary, read_terms
from toolkit.planning.llm_planner import FailedTry, ModelRequest, build_planner_input
from toolkit.planning.model_reply import read_plan_reply
from toolkit.planning.plan_draft import PlanDraft, PlannerView
from toolkit.planning.plan_validator import PlanRules
from toolkit.verify.planning import KINDS_BY_ID

THEME_FAMILIES = {
    **dict.fromkeys(("midnight", "ember", "forest"), "dark"),
    **dict.fromkeys(("dawn", "paper", "mint", "lilac"), "light"),
}
MIN_EXACT, MIN_RUN, MAX_IMPOSSIBLE_RUN = 0.85, 0.40, 0.03
MIN_REPLIES_EXACT = 0.99
LIMIT_MS = 5.0
SIZES = (1_000, 2_000, 4_000, 10_000)  # characters of an objective
MAX_EXPONENT, LONGEST_MS = 1.3, 50.0
# An objective of an ordinary plan, and a reply that needs a repair.
OBJECTIVE = "A card about tides with a spoken summary in German, and a picture of a mill"
FAILED = FailedTry("{} " * 700, [Detail("nodes.1.input.width", "Input should be a multiple")] * 3)
REPLIES = SETS / "replies.jsonl"
T = TypeVar("T")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")


@cache
def build_view() -> PlannerView:
    """Build the view of an account that has connected all providers."""
    capabilities = load_capabilities()
    return PlannerView(
        capabilities, frozenset({"every"}), {c.id: frozenset({"every"}) for c in capabilities}
    )


@dataclass(frozen=True)
class Outcome:
    """A line, its plan, and the time of planning."""

    line: SetLine
    draft: PlanDraft
    graph: Graph
    seconds: float = 0.0

    @property
    def blocked(self) -> bool:
        """True if the plan reports that no capability can do a part of it."""
        return bool(self.draft.missing_capabilities)

    @property
    def question(self) -> bool:
        """True if the plan asks a question."""
        return self.draft.question is not None and not self.blocked

    def agrees(self, *, strict: bool) -> bool:
        """Return whether the plan is correct; `strict` includes its fields and counts."""
        if (self.blocked, self.question) != (self.line.blocked, self.line.question):
            return False
        return any(can_lay(plan, self.graph, strict=strict) for plan in self.line.plans)

    @property
    def delivers(self) -> bool:
        """True if the plan is correct and has exactly the deliverables that were asked for."""
        expected = self.line.plans[0]
        mappings = find_mappings(expected, self.graph, strict=False)
        same = any(
            {m[d] for d in expected.deliverables} == self.graph.deliverables for m in mappings
        )
        return self.agrees(strict=False) and (same or not expected.deliverables)


def plan_line(line: SetLine) -> Outcome:
    """Plan an objective by keywords; a plan that cannot run has no graph."""
    started = time.thread_time()
    draft = make_plan(line.objective, Constraints(), build_view())
    took = time.thread_time() - started
    return Outcome(line, draft, make_graph(draft), took)


def make_graph(draft: PlanDraft) -> Graph:
    """Make the graph that a plan would run; it is empty if the plan cannot run."""
    if draft.missing_capabilities or draft.question is not None:
        return Graph()
    nodes = []
    for node in draft.nodes:
        fields = dict(node.input)
        family = THEME_FAMILIES.get(str(fields.get("theme")))
        if family is not None:
            fields["theme family"] = family
        numbers = find_numbers(str(fields.get("objective", "")))
        nodes.append(
            GraphNode(node.id, KINDS_BY_ID.get(node.capability, node.capability), fields, numbers)
        )
    edges = frozenset((up, node.id) for node in draft.nodes for up in node.depends_on)
    return Graph(tuple(nodes), edges, frozenset(draft.deliverables))


def find_numbers(brief: str) -> frozenset[float]:
    """Find the numbers in a brief, in digits or in words."""
    digits = (float(number.replace(",", ".")) for number in _NUMBER.findall(fold(brief)))
    terms = read_terms(brief, choose_vocabulary(brief))
    return frozenset(digits) | {float(t["numbers"]) for t in terms if t["numbers"]}


def find_closest(outcome: Outcome) -> Graph:
    """Return the correct plan that is closest to a plan."""

    def count_shared(expected: Graph) -> int:
        nodes = expected.count_kinds() & outcome.graph.count_kinds()
        edges = expected.count_edges() & outcome.graph.count_edges()
        extra = len(expected.nodes) + len(expected.edges)
        return 2 * (nodes.total() + edges.total()) - extra

    return max(outcome.line.plans, key=count_shared)


def find_f1(outcomes: Sequence[Outcome], count: Callable[[Graph], Counter[T]]) -> float:
    """Compute the F1 score of all plans' nodes or edges together, by kind."""
    shared = expected = planned = 0
    for outcome in outcomes:
        right, actual = count(find_closest(outcome)), count(outcome.graph)
        shared += sum(min(number, actual[key]) for key, number in right.items())
        expected, planned = expected + right.total(), planned + actual.total()
    return 2 * shared / (expected + planned) if expected + planned else 1.0


def find_share(answers: Iterable[bool]) -> float:
    """Return the share of true answers; 1 if there are no answers."""
    every = list(answers)
    return sum(every) / len(every) if every else 1.0


def measure(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Measure the correctness of plans, as shares."""
    return {
        "node_f1": find_f1(outcomes, Graph.count_kinds),
        "edge_f1": find_f1(outcomes, Graph.count_edges),
        "exact": find_share(o.agrees(strict=False) for o in outcomes),
        "exact_with_fields": find_share(o.agrees(strict=True) for o in outcomes),
        "deliverables": find_share(o.delivers for o in outcomes),
        "blocked_precision": find_share(o.line.blocked for o in outcomes if o.blocked),
        "blocked_recall": find_share(o.blocked for o in outcomes if o.line.blocked),
        "question_precision": find_share(o.line.question for o in outcomes if o.question),
        "question_recall": find_share(o.question for o in outcomes if o.line.question),
    }


def show_failures(outcomes: Iterable[Outcome]) -> None:
    """Print the plans with errors, but only of the split to work on."""
    for outcome in outcomes:
        line = outcome.line
        if line.split != "work" or outcome.agrees(strict=True):
            continue
        right = "fields" if outcome.agrees(strict=False) else "GRAPH"
        print(f"\n{line.id} {right}: {line.objective}", file=sys.stderr)
        expected = line.plans[0]
        print(f"  expected {_draw(expected, line.blocked, line.question)}", file=sys.stderr)
        print(
            f"  planned  {_draw(outcome.graph, outcome.blocked, outcome.question)}", file=sys.stderr
        )
        print(f"  says     {outcome.draft.rationale}", file=sys.stderr)


def _draw(graph: Graph, blocked: bool, question: bool) -> str:
    if blocked or question:
        return "blocked" if blocked else "a question"
    kinds = {node.id: node.kind for node in graph.nodes}
    needs = {n: [up for up, then in sorted(graph.edges) if then == n] for n in kinds}
    return "; ".join(
        f"{n.id}={n.kind}{needs[n.id] or ''} {dict(n.fields)}"
        + (f" {sorted(n.numbers)}" if n.numbers else "")
        for n in graph.nodes
    )


def print_table(rows: Sequence[tuple[str, dict[str, float]]]) -> None:
    """Print figures as the table of `docs/planning.md`."""
    heads = ["", "exact of run", "with fields", "run of possible", "impossible run"]
    print("\n| " + " | ".join(heads) + " |")
    print("|---|" + "---:|" * (len(heads) - 1))
    for name, figures in rows:
        print(f"| {name} | " + " | ".join(f"{value:.2f}" for value in figures.values()) + " |")


def measure_keywords(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Measure the three figures of a planner that abstains, as shares."""
    run = [o for o in outcomes if o.graph.nodes]
    possible = [o for o in outcomes if not (o.line.blocked or o.line.question)]
    return {
        "exact_of_run": find_share(o.agrees(strict=False) for o in run),
        "with_fields_of_run": find_share(o.agrees(strict=True) for o in run),
        "run_of_possible": find_share(bool(o.graph.nodes) for o in possible),
        "impossible_run": find_share(bool(o.graph.nodes) for o in outcomes if o.line.blocked),
    }


def report_keywords(lines: Sequence[SetLine], languages: Sequence[str], *, shows: bool) -> bool:
    """Report the correctness of plans by keywords; returns True if all limits are kept."""
    outcomes = [plan_line(line) for line in lines]
    if shows:
        show_failures(outcomes)
    rows = [(lang, [o for o in outcomes if o.line.lang == lang]) for lang in languages]
    are_kept = True
    for name, group in [*rows, ("all", outcomes)]:
        figures = measure_keywords(group)
        bars = {"exact_of_run": MIN_EXACT, "run_of_possible": MIN_RUN} if name == "all" else {}
        wrongly = figures.pop("impossible_run")
        for figure, value in figures.items():
            are_kept &= report_share(f"planning.{name}.{figure}", value, at_least=bars.get(figure))
        limit = MAX_IMPOSSIBLE_RUN if name == "all" else None
        are_kept &= report(
            f"planning.{name}.impossible_run", wrongly, "share", floor=0, limit=limit
        )
    took = sorted(1000 * o.seconds for o in outcomes)
    are_kept &= report("planning.time", statistics.median(took), "ms", floor=0, limit=LIMIT_MS)
    print_table([*((name, measure_keywords(group)) for name, group in rows),
                 ("all", measure_keywords(outcomes))])  # fmt: skip
    return are_kept


def measure_growth(code: str) -> tuple[float, float]:
    """Measure the growth of planning time with the length of an objective in a language.

    Returns:
        the exponent of the growth, and the milliseconds of the longest objective.
    """
    words = " ".join(list(load_vocabulary(code).words)[:60]) + " "
    took = []
    for size in SIZES:
        objective = (words * (size // len(words) + 1))[:size]
        rounds = []
        for _ in range(3):
            started = time.thread_time()
            make_plan(objective, Constraints(), build_view())
            rounds.append(time.thread_time() - started)
        took.append(min(rounds))
    slope, _ = statistics.linear_regression(
        [math.log(size) for size in SIZES], [math.log(seconds) for seconds in took]
    )
    return slope, 1000 * took[-1]


def read_replies() -> list[Outcome]:
    """Read the recorded replies of a language model, one try each, by the current reader."""
    capabilities = load_capabilities()
    rules = PlanRules({c.id: c for c in capabilities} | {c.name: c for c in capabilities})
    lines = {line.id: line for line in read_lines()}
    outcomes = []
    for row in map(json.loads, REPLIES.read_text("utf-8").splitlines()):
        draft = read_plan_reply(row["reply"], row["objective"], build_view(), rules).draft
        outcomes.append(Outcome(lines[row["id"]], draft, make_graph(draft)))
    return outcomes


def report_bounds() -> None:
    """Report the maximum cost of a plan and two repairs with each provider's default model."""
    capabilities = load_capabilities()
    request = ModelRequest(OBJECTIVE, capabilities, frozenset(c.id for c in capabilities))
    tries = [build_planner_input(request, [FAILED] * n) for n in range(3)]
    with (
        tempfile.TemporaryDirectory() as folder,
        Client.local(Path(folder) / "data", sandbox=True) as client,
    ):
        for provider in client.providers.list():
            try:
                routes = [
                    client.route("llm.generate", inputs, provider=provider.id) for inputs in tries
                ]
            except ToolkitError:
                continue  # it has no texts
            bounds = [route.record.reservation_usd or math.inf for route in routes]
            report(
                f"planning.bound.{provider.id}", sum(bounds), "USD", floor=0,
                limit=float(PREVIEW_LIMIT_USD), model=routes[0].record.model, one_call=bounds[0],
            )  # fmt: skip


def plan_line_by_model(line: SetLine, client: Client) -> tuple[Outcome, int, float]:
    """Plan an objective by a model; keywords plan it if the model makes no usable plan.

    Returns:
        the outcome of the model, which is empty if keywords planned; the number of calls; their
        cost in US dollars.
    """
    plan = client.plans.create(line.objective, planner="auto").record
    draft = PlanDraft([], question="Planned by keywords.")
    if plan.planner == "llm":
        draft = PlanDraft(
            nodes=plan.nodes,
            missing=tuple(plan.missing),
            deliverables=tuple(plan.deliverables),
            question=plan.question,
        )
    outcome = Outcome(line, draft, make_graph(draft))
    return outcome, len(plan.llm_job_ids), plan.cost_incurred_usd


def report_model(args: argparse.Namespace) -> int:
    """Report the correctness of the plans of a language model; there are no limits."""
    if not (args.base_url and args.model):
        report_skipped("planning.llm")
        return 0
    with open_model_client(args.base_url, args.model) as client:
        for lang in args.lang or LANGUAGES:
            planned = [
                plan_line_by_model(line, client)
                for line in read_lines([lang], "work" if args.show else args.split)
            ]
            outcomes = [outcome for outcome, _, _ in planned]
            if args.show:
                show_failures(outcomes)
            for figure, value in measure(outcomes).items():
                report_share(f"planning.llm.{lang}.{figure}", value)
            fallen = [o.draft.question == "Planned by keywords." for o in outcomes]
            report_share(f"planning.llm.{lang}.fallbacks", find_share(fallen))
            repairs = statistics.fmean(max(0, calls - 1) for _, calls, _ in planned)
            report(f"planning.llm.{lang}.repairs", repairs, "a plan", floor=0, limit=None)
            cost = statistics.fmean(usd for _, _, usd in planned)
            report(f"planning.llm.{lang}.cost", cost, "USD a plan", floor=0, limit=None)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Measure every language; the exit code is 1 if a limit is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks.planning")
    parser.add_argument("--lang", choices=LANGUAGES, action="append")
    parser.add_argument("--split", choices=("work", "report"), default="report")
    parser.add_argument(
        "--show", action="store_true", help="print the wrong plans of the split `work`"
    )
    parser.add_argument("--planner", choices=("rules", "llm"), default="rules")
    add_model_arguments(parser)
    args = parser.parse_args(argv)
    if args.planner == "llm":
        return report_model(args)
    languages = args.lang or LANGUAGES
    lines = read_lines(languages, "work" if args.show else args.split)
    are_kept = report_keywords(lines, languages, shows=args.show)
    growths = [measure_growth(code) for code in CODES]
    exponent, longest_ms = (max(values) for values in zip(*growths, strict=True))
    are_kept &= report("planning.growth", exponent, "exponent", floor=1, limit=MAX_EXPONENT)
    are_kept &= report("planning.longest", longest_ms, "ms", floor=0, limit=LONGEST_MS)
    replies = measure(read_replies())
    for figure, value in replies.items():
        bar = MIN_REPLIES_EXACT if figure == "exact" else None
        are_kept &= report_share(f"planning.replies.{figure}", value, at_least=bar)
    report_bounds()
    return 0 if are_kept else 1


if __name__ == "__main__":
    sys.exit(main())
