"""The lines of `benchmarks/sets/planning`, and the comparison of a plan with an expected plan."""

import json
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SETS = Path(__file__).parent / "sets" / "planning"
LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "ja", "zh", "ar")
COUNTED = ("words", "chars", "sentences", "bullets")
# Names of languages in the languages of the sets, by their first letters after folding.
LANGUAGE_STEMS = {
    "ar": ("arab", "阿拉伯", "アラビア", "عرب"),
    "da": ("dan", "dän", "丹麦", "デンマーク", "دنمارك", "دانمارك"),
    "de": ("german", "deutsch", "allem", "alem", "tedesc", "德", "ドイツ", "الماني"),
    "en": ("engl", "angl", "ingl", "英", "انجليز"),
    "es": ("span", "espa", "spagn", "castell", "西班牙", "スペイン", "اسبان", "قشتال"),
    "fr": ("french", "franz", "fran", "法", "フランス", "仏", "فرنس"),
    "gl": ("galic", "galleg", "galeg"),
    "it": ("ital", "意大利", "義大利", "イタリア", "伊", "يطالي"),
    "ja": ("japan", "japon", "giappon", "日", "يابان"),
    "ko": ("korea", "core", "韩", "韓", "كوري"),
    "nl": ("dutch", "nieder", "neerl", "holand", "oland", "荷", "オランダ", "هولند"),
    "pl": ("pol", "波兰", "ポーランド", "بولند"),
    "pt": ("portug", "葡", "ポルトガル", "برتغال"),
    "ru": ("russ", "rus", "俄", "ロシア", "روس"),
    "th": ("thai", "tai", "泰", "タイ", "تايلند"),
    "tr": ("turk", "turc", "土耳其", "トルコ", "ترك"),
    "zh": ("chin", "cin", "mandar", "中", "صيني"),
}


@dataclass(frozen=True)
class GraphNode:
    """A node of an expected or a planned graph, with the parts that are compared.

    Attributes:
        fields: fields of a planned node; for an expected node only the fields that the objective
            fixes.
        numbers: counts that an objective asks for in an expected text, or that a planned text has.
        language: code of the language asked for, if it differs from the objective's.
    """

    id: str
    kind: str
    fields: Mapping[str, object]
    numbers: frozenset[float] = frozenset()
    language: str | None = None


@dataclass(frozen=True)
class Graph:
    """Nodes and the pairs of ids that are their edges."""

    nodes: tuple[GraphNode, ...] = ()
    edges: frozenset[tuple[str, str]] = frozenset()
    deliverables: frozenset[str] = frozenset()

    def count_kinds(self) -> Counter[str]:
        """Count the nodes of each kind."""
        return Counter(node.kind for node in self.nodes)

    def count_edges(self) -> Counter[tuple[str, str]]:
        """Count the edges between each pair of kinds."""
        kinds = {node.id: node.kind for node in self.nodes}
        return Counter((kinds[first], kinds[then]) for first, then in self.edges)


@dataclass(frozen=True)
class SetLine:
    """An objective and its correct plans; figures are computed from the first plan."""

    id: str
    lang: str
    split: str
    objective: str
    plans: tuple[Graph, ...]
    blocked: bool
    question: bool


def read_lines(languages: Sequence[str] = LANGUAGES, split: str | None = None) -> list[SetLine]:
    """Read the objectives of some languages, of one split or of both."""
    rows = [
        json.loads(row)
        for lang in languages
        for row in (SETS / f"{lang}.jsonl").read_text("utf-8").splitlines()
    ]
    return [
        SetLine(
            id=row["id"],
            lang=row["lang"],
            split=row["split"],
            objective=row["objective"],
            plans=tuple(_read_graph(plan, row["lang"]) for plan in [row, *row["alternatives"]]),
            blocked=row["blocked"],
            question=row["question"],
        )
        for row in rows
        if split in {None, row["split"]}
    ]


def _read_graph(plan: dict[str, Any], lang: str) -> Graph:
    nodes = tuple(
        GraphNode(
            id=node["id"],
            kind=node["kind"],
            fields=node.get("fields", {}),
            numbers=frozenset(node[unit] for unit in COUNTED if unit in node),
            language=node.get("language") if node.get("language") != lang else None,
        )
        for node in plan["nodes"]
    )
    edges = frozenset((first, then) for first, then in plan["edges"])
    return Graph(nodes, edges, frozenset(plan.get("deliverables", ())))


def find_mappings(expected: Graph, planned: Graph, *, strict: bool) -> Iterator[dict[str, str]]:
    """Find the mappings of one graph onto another that keep the kinds of nodes and the edges.

    Args:
        expected: graph that a line of the set expects.
        planned: graph of the plan.
        strict: True if the fields, counts and languages of nodes must match, too.
    """
    if (
        expected.count_kinds() != planned.count_kinds()
        or expected.count_edges() != planned.count_edges()
    ):
        return
    choices = [
        [
            other.id
            for other in planned.nodes
            if node.kind == other.kind and (not strict or fits(node, other))
        ]
        for node in expected.nodes
    ]
    order = sorted(range(len(choices)), key=lambda place: len(choices[place]))
    yield from _lay(expected, planned, [(expected.nodes[i].id, choices[i]) for i in order], {})


def can_lay(expected: Graph, planned: Graph, *, strict: bool) -> bool:
    """Return whether `find_mappings` finds a mapping between two graphs."""
    return next(find_mappings(expected, planned, strict=strict), None) is not None


def _lay(
    expected: Graph, planned: Graph, open_nodes: list[tuple[str, list[str]]], laid: dict[str, str]
) -> Iterator[dict[str, str]]:
    if not open_nodes:
        yield dict(laid)
        return
    (node, choices), *open_rest = open_nodes
    for choice in choices:
        if choice in laid.values():
            continue
        agrees = all(
            ((node, expected_id) in expected.edges) == ((choice, planned_id) in planned.edges)
            and ((expected_id, node) in expected.edges) == ((planned_id, choice) in planned.edges)
            for expected_id, planned_id in laid.items()
        )
        if agrees:
            yield from _lay(expected, planned, open_rest, {**laid, node: choice})


def fits(expected: GraphNode, planned: GraphNode) -> bool:
    """Return whether a planned node has the fields, counts and language that the set fixes."""
    if not all(_holds(name, value, planned) for name, value in expected.fields.items()):
        return False
    text = fold(" ".join(map(str, planned.fields.values())))
    stems = LANGUAGE_STEMS.get(expected.language or "", ("",))
    return expected.numbers <= planned.numbers and any(fold(stem) in text for stem in stems)


def _holds(name: str, value: object, planned: GraphNode) -> bool:
    field = planned.fields.get(name)
    if isinstance(value, bool | int | float):
        return isinstance(field, int | float) and abs(field - value) < 1e-6
    if isinstance(value, list):
        return isinstance(field, list) and fold(str(field)) == fold(str(value))
    if field is None:
        return False
    if name in {"theme", "format"}:
        return fold(str(field)) == fold(str(value)) or value == planned.fields.get(f"{name} family")
    text = fold(str(field))
    return all(word in text for word in fold(str(value)).split())


def fold(text: str) -> str:
    """Fold a text for comparison: no case, accents, punctuation or digits of another script.

    >>> fold("Größe: ٣ Äpfel")
    'grosse 3 apfel'
    """
    plain = unicodedata.normalize("NFKD", text).casefold()
    characters = (c if c.isalnum() else " " for c in plain if not unicodedata.combining(c))
    digits = (str(unicodedata.digit(c)) if c.isdigit() else c for c in characters)
    return " ".join("".join(digits).split())
