"""The lines of `benchmarks/sets/planning`, and how a plan compares with what they say."""

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
# Names of a language, in the languages of the sets, by how they begin once folded.
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
    """A node, expected or planned, as far as they are compared.

    Attributes:
        given: its fields; of an expected one, those that the objective fixes.
        numbers: of an expected text, the counts asked of it; of a planned one, those it has.
        language: the code of the one that a text is asked for in, if it is not the objective's.
    """

    id: str
    kind: str
    given: Mapping[str, object]
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
    """An objective and its right plans, the first of which is the one that figures go by."""

    id: str
    lang: str
    split: str
    objective: str
    plans: tuple[Graph, ...]
    blocked: bool
    question: bool


def read_lines(languages: Sequence[str] = LANGUAGES, split: str | None = None) -> list[SetLine]:
    """Read the objectives of some languages, of one half or of both."""
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
            given=node.get("fields", {}),
            numbers=frozenset(node[unit] for unit in COUNTED if unit in node),
            language=node.get("language") if node.get("language") != lang else None,
        )
        for node in plan["nodes"]
    )
    edges = frozenset((first, then) for first, then in plan["edges"])
    return Graph(nodes, edges, frozenset(plan.get("deliverables", ())))


def find_mappings(wanted: Graph, made: Graph, *, strict: bool) -> Iterator[dict[str, str]]:
    """Find the ways to lay one graph upon another: kind upon kind and edge upon edge.

    Args:
        wanted: what a line of the set expects.
        made: what was planned.
        strict: whether the fields, counts and languages of nodes have to be as expected, too.
    """
    if wanted.count_kinds() != made.count_kinds() or wanted.count_edges() != made.count_edges():
        return
    choices = [
        [two.id for two in made.nodes if one.kind == two.kind and (not strict or fits(one, two))]
        for one in wanted.nodes
    ]
    order = sorted(range(len(choices)), key=lambda place: len(choices[place]))
    yield from _lay(wanted, made, [(wanted.nodes[i].id, choices[i]) for i in order], {})


def can_lay(wanted: Graph, made: Graph, *, strict: bool) -> bool:
    """Tell whether one graph can be laid upon another, as `find_mappings` finds."""
    return next(find_mappings(wanted, made, strict=strict), None) is not None


def _lay(
    wanted: Graph, made: Graph, open_nodes: list[tuple[str, list[str]]], laid: dict[str, str]
) -> Iterator[dict[str, str]]:
    if not open_nodes:
        yield dict(laid)
        return
    (node, choices), *rest = open_nodes
    for choice in choices:
        if choice in laid.values():
            continue
        agrees = all(
            ((node, other) in wanted.edges) == ((choice, there) in made.edges)
            and ((other, node) in wanted.edges) == ((there, choice) in made.edges)
            for other, there in laid.items()
        )
        if agrees:
            yield from _lay(wanted, made, rest, {**laid, node: choice})


def fits(wanted: GraphNode, made: GraphNode) -> bool:
    """Tell whether a planned node has what the set fixes of it."""
    if not all(_holds(name, value, made) for name, value in wanted.given.items()):
        return False
    written = fold(" ".join(map(str, made.given.values())))
    stems = LANGUAGE_STEMS.get(wanted.language or "", ("",))
    return wanted.numbers <= made.numbers and any(fold(stem) in written for stem in stems)


def _holds(name: str, value: object, made: GraphNode) -> bool:
    given = made.given.get(name)
    if isinstance(value, bool | int | float):
        return isinstance(given, int | float) and abs(given - value) < 1e-6
    if isinstance(value, list):
        return isinstance(given, list) and fold(str(given)) == fold(str(value))
    if given is None:
        return False
    if name in {"theme", "format"}:
        return fold(str(given)) == fold(str(value)) or value == made.given.get(f"{name} family")
    there = fold(str(given))
    return all(word in there for word in fold(str(value)).split())


def fold(text: str) -> str:
    """Fold a text for comparison: no case, accents, punctuation or digits of another script.

    >>> fold("Größe: ٣ Äpfel")
    'grosse 3 apfel'
    """
    plain = unicodedata.normalize("NFKD", text).casefold()
    kept = (c if c.isalnum() else " " for c in plain if not unicodedata.combining(c))
    digits = (str(unicodedata.digit(c)) if c.isdigit() else c for c in kept)
    return " ".join("".join(digits).split())
