"""Plans of objectives that somebody wrote beside their right plans: how many are right.

Run `python -m benchmarks.planning`: the keyword planner, the recorded replies of a language model,
and what planning by each provider's model may cost. `--lang en` is for one language, `--split work`
for one half of the set, `--show` for what the keyword planner did wrong. Of the half that figures
are told of, `report`, no line is ever shown: what was worked out on it would make its figures
worthless. `--planner llm` has a language model plan; `benchmarks/_language_model.py` says how it is
named. Every standard capability is there and every provider is connected.

The keyword planner abstains if it does not know every clause. So it has three figures: the share of
exact plans among those that it runs, the share of the objectives that can be done that it runs, and
the share of the impossible ones that it runs as something else.
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
# An objective of an ordinary plan, and an answer to it that has to be repaired.
OBJECTIVE = "A card about tides with a spoken summary in German, and a picture of a mill"
FAILED = FailedTry("{} " * 700, [Detail("nodes.1.input.width", "Input should be a multiple")] * 3)
REPLIES = SETS / "replies.jsonl"
T = TypeVar("T")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")


@cache
def build_view() -> PlannerView:
    """Build the view of an account that has connected all there is."""
    capabilities = load_capabilities()
    return PlannerView(
        capabilities, frozenset({"every"}), {c.id: frozenset({"every"}) for c in capabilities}
    )


@dataclass(frozen=True)
class Outcome:
    """A line, what was planned for it, and how long that took."""

    line: SetLine
    draft: PlanDraft
    graph: Graph
    seconds: float = 0.0

    @property
    def blocked(self) -> bool:
        """True if the plan says that nothing here can do a part of it."""
        return bool(self.draft.missing_capabilities)

    @property
    def question(self) -> bool:
        """True if the plan asks something."""
        return self.draft.question is not None and not self.blocked

    def agrees(self, *, strict: bool) -> bool:
        """Tell whether the plan is right, and with `strict` in its fields and counts, too."""
        if (self.blocked, self.question) != (self.line.blocked, self.line.question):
            return False
        return any(can_lay(one, self.graph, strict=strict) for one in self.line.plans)

    @property
    def delivers(self) -> bool:
        """True if the plan is right and hands over what was asked for, and nothing else."""
        wanted = self.line.plans[0]
        found = find_mappings(wanted, self.graph, strict=False)
        same = any({m[d] for d in wanted.deliverables} == self.graph.deliverables for m in found)
        return self.agrees(strict=False) and (same or not wanted.deliverables)


def plan_line(line: SetLine) -> Outcome:
    """Plan an objective by keywords; what would not be run has no graph."""
    started = time.thread_time()
    draft = make_plan(line.objective, Constraints(), build_view())
    took = time.thread_time() - started
    return Outcome(line, draft, make_graph(draft), took)


def make_graph(draft: PlanDraft) -> Graph:
    """Make the graph that a plan would be run as: none, if it cannot be run."""
    if draft.missing_capabilities or draft.question is not None:
        return Graph()
    nodes = []
    for node in draft.nodes:
        given = dict(node.input)
        family = THEME_FAMILIES.get(str(given.get("theme")))
        if family is not None:
            given["theme family"] = family
        numbers = find_numbers(str(given.get("objective", "")))
        nodes.append(
            GraphNode(node.id, KINDS_BY_ID.get(node.capability, node.capability), given, numbers)
        )
    edges = frozenset((up, node.id) for node in draft.nodes for up in node.depends_on)
    return Graph(tuple(nodes), edges, frozenset(draft.deliverables))


def find_numbers(brief: str) -> frozenset[float]:
    """Find the numbers that a brief has, in digits or in words."""
    digits = (float(number.replace(",", ".")) for number in _NUMBER.findall(fold(brief)))
    terms = read_terms(brief, choose_vocabulary(brief))
    return frozenset(digits) | {float(t["numbers"]) for t in terms if t["numbers"]}


def find_closest(outcome: Outcome) -> Graph:
    """Find the right plan that a plan is closest to."""

    def count_shared(wanted: Graph) -> int:
        nodes = wanted.count_kinds() & outcome.graph.count_kinds()
        edges = wanted.count_edges() & outcome.graph.count_edges()
        extra = len(wanted.nodes) + len(wanted.edges)
        return 2 * (nodes.total() + edges.total()) - extra

    return max(outcome.line.plans, key=count_shared)


def find_f1(outcomes: Sequence[Outcome], count: Callable[[Graph], Counter[T]]) -> float:
    """Find the F1 of all plans' nodes or edges together, by kind."""
    shared = wanted = made = 0
    for outcome in outcomes:
        right, here = count(find_closest(outcome)), count(outcome.graph)
        shared += sum(min(number, here[key]) for key, number in right.items())
        wanted, made = wanted + right.total(), made + here.total()
    return 2 * shared / (wanted + made) if wanted + made else 1.0


def find_share(answers: Iterable[bool]) -> float:
    """Find the share of what is true; all of nothing is."""
    every = list(answers)
    return sum(every) / len(every) if every else 1.0


def measure(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Measure how right plans are, as shares."""
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
    """Print what was planned wrongly; of the half to work on alone."""
    for outcome in outcomes:
        line = outcome.line
        if line.split != "work" or outcome.agrees(strict=True):
            continue
        right = "fields" if outcome.agrees(strict=False) else "GRAPH"
        print(f"\n{line.id} {right}: {line.objective}", file=sys.stderr)
        wanted = line.plans[0]
        print(f"  wanted {_draw(wanted, line.blocked, line.question)}", file=sys.stderr)
        print(
            f"  made   {_draw(outcome.graph, outcome.blocked, outcome.question)}", file=sys.stderr
        )
        print(f"  says   {outcome.draft.rationale}", file=sys.stderr)


def _draw(graph: Graph, blocked: bool, question: bool) -> str:
    if blocked or question:
        return "blocked" if blocked else "a question"
    kinds = {node.id: node.kind for node in graph.nodes}
    needs = {n: [up for up, then in sorted(graph.edges) if then == n] for n in kinds}
    return "; ".join(
        f"{n.id}={n.kind}{needs[n.id] or ''} {dict(n.given)}"
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
    run = [one for one in outcomes if one.graph.nodes]
    possible = [one for one in outcomes if not (one.line.blocked or one.line.question)]
    return {
        "exact_of_run": find_share(one.agrees(strict=False) for one in run),
        "with_fields_of_run": find_share(one.agrees(strict=True) for one in run),
        "run_of_possible": find_share(bool(one.graph.nodes) for one in possible),
        "impossible_run": find_share(bool(o.graph.nodes) for o in outcomes if o.line.blocked),
    }


def tell_keywords(lines: Sequence[SetLine], languages: Sequence[str], *, shows: bool) -> bool:
    """Tell how right the plans by keywords are; true if all bars are reached."""
    outcomes = [plan_line(line) for line in lines]
    if shows:
        show_failures(outcomes)
    rows = [(lang, [one for one in outcomes if one.line.lang == lang]) for lang in languages]
    kept = True
    for name, chosen in [*rows, ("all", outcomes)]:
        figures = measure_keywords(chosen)
        bars = {"exact_of_run": MIN_EXACT, "run_of_possible": MIN_RUN} if name == "all" else {}
        wrongly = figures.pop("impossible_run")
        for figure, value in figures.items():
            kept &= report_share(f"planning.{name}.{figure}", value, at_least=bars.get(figure))
        limit = MAX_IMPOSSIBLE_RUN if name == "all" else None
        kept &= report(f"planning.{name}.impossible_run", wrongly, "share", floor=0, limit=limit)
    took = sorted(1000 * one.seconds for one in outcomes)
    kept &= report("planning.time", statistics.median(took), "ms", floor=0, limit=LIMIT_MS)
    print_table([*((name, measure_keywords(chosen)) for name, chosen in rows),
                 ("all", measure_keywords(outcomes))])  # fmt: skip
    return kept


def measure_growth(code: str) -> tuple[float, float]:
    """Measure how the time of a plan grows with the length of an objective in a language.

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
    """Read the recorded replies of a language model, one try each, by the reader of today."""
    capabilities = load_capabilities()
    rules = PlanRules({c.id: c for c in capabilities} | {c.name: c for c in capabilities})
    lines = {line.id: line for line in read_lines()}
    found = []
    for row in map(json.loads, REPLIES.read_text("utf-8").splitlines()):
        draft = read_plan_reply(row["reply"], row["objective"], build_view(), rules).draft
        found.append(Outcome(lines[row["id"]], draft, make_graph(draft)))
    return found


def tell_bounds() -> None:
    """Tell the most that a plan and two repairs may cost with each provider's default model."""
    capabilities = load_capabilities()
    asked = ModelRequest(OBJECTIVE, capabilities, frozenset(c.id for c in capabilities))
    tries = [build_planner_input(asked, [FAILED] * n) for n in range(3)]
    with (
        tempfile.TemporaryDirectory() as folder,
        Client.local(Path(folder) / "data", sandbox=True) as client,
    ):
        for provider in client.providers.list():
            try:
                routes = [client.route("llm.generate", one, provider=provider.id) for one in tries]
            except ToolkitError:
                continue  # it has no texts
            bounds = [route.record.reservation_usd or math.inf for route in routes]
            report(
                f"planning.bound.{provider.id}", sum(bounds), "USD", floor=0,
                limit=float(PREVIEW_LIMIT_USD), model=routes[0].record.model, one_call=bounds[0],
            )  # fmt: skip


def plan_line_by_model(line: SetLine, client: Client) -> tuple[Outcome, int, float]:
    """Have an objective planned; by keywords where the model makes no plan that can be used.

    Returns:
        what came of it by the model, which is nothing where keywords planned; the calls; their
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


def tell_model(args: argparse.Namespace) -> int:
    """Tell how right the plans of a language model are; nothing has to be reached."""
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
    """Measure every language; exit code 1 if a bar is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks.planning")
    parser.add_argument("--lang", choices=LANGUAGES, action="append")
    parser.add_argument("--split", choices=("work", "report"), default="report")
    parser.add_argument("--show", action="store_true", help="what went wrong, of the work half")
    parser.add_argument("--planner", choices=("rules", "llm"), default="rules")
    add_model_arguments(parser)
    args = parser.parse_args(argv)
    if args.planner == "llm":
        return tell_model(args)
    languages = args.lang or LANGUAGES
    lines = read_lines(languages, "work" if args.show else args.split)
    kept = tell_keywords(lines, languages, shows=args.show)
    growths = [measure_growth(code) for code in CODES]
    exponent, longest_ms = (max(values) for values in zip(*growths, strict=True))
    kept &= report("planning.growth", exponent, "exponent", floor=1, limit=MAX_EXPONENT)
    kept &= report("planning.longest", longest_ms, "ms", floor=0, limit=LONGEST_MS)
    replies = measure(read_replies())
    for figure, value in replies.items():
        bar = MIN_REPLIES_EXACT if figure == "exact" else None
        kept &= report_share(f"planning.replies.{figure}", value, at_least=bar)
    tell_bounds()
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
