"""Groups of nodes that share one box if there are too many nodes to draw each."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from toolkit.display.workflow.layers import assign_layers

MAX_SINGLE_BOXES = 40  # nodes up to which each node has its own box
MAX_SIBLING_BOXES = 120  # boxes up to which only siblings are grouped
MIN_GROUP_SIZE = 4  # nodes in the smallest group


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes of one layer and one capability, which are drawn as one box.

    Attributes:
        members: ids of the nodes; nodes that are not siblings are ordered to cross few lines.
        are_siblings: whether all members have the same dependencies and dependents; otherwise
            they only share a layer, each with its own neighbours.
    """

    members: tuple[str, ...]
    are_siblings: bool


def group_nodes(
    capabilities: Mapping[str, str],
    depends_on: Mapping[str, Sequence[str]],
    *,
    apart: Collection[str] = (),
) -> list[NodeGroup]:
    """Group similar nodes until a graph is small enough to read at a glance.

    Siblings come first: a fan-out is one box. If too many boxes remain, as in a hundred parallel
    chains, the nodes of a layer with one capability share a box.

    Args:
        apart: nodes that stay alone, so that they are visible.

    >>> group_nodes({"a": "x"}, {"a": []})
    []
    """
    if len(capabilities) <= MAX_SINGLE_BOXES:
        return []
    dependents: dict[str, list[str]] = defaultdict(list)
    for node, upstreams in depends_on.items():
        for upstream in upstreams:
            dependents[upstream].append(node)
    free = [node for node in capabilities if node not in apart]
    siblings = _collect_alike(
        free,
        {
            node: (capabilities[node], frozenset(depends_on[node]), frozenset(dependents[node]))
            for node in free
        },
    )
    groups = [NodeGroup(members, are_siblings=True) for members in siblings]
    grouped = {node for members in siblings for node in members}
    if len(capabilities) - len(grouped) + len(groups) <= MAX_SIBLING_BOXES:
        return groups
    layers = assign_layers(depends_on)
    singles = [node for node in free if node not in grouped]
    layer_groups = _collect_alike(
        singles, {node: (capabilities[node], layers[node]) for node in singles}
    )
    layer_groups.sort(key=lambda members: layers[members[0]])
    return groups + [
        NodeGroup(m, are_siblings=False) for m in _order_members(layer_groups, depends_on)
    ]


def _order_members(
    groups: Iterable[tuple[str, ...]], depends_on: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, ...]]:
    """Order the members of groups, from left to right, by the places of their dependencies."""
    place: dict[str, float] = {}
    for members in groups:
        targets = {}
        for node in members:
            places = [place[upstream] for upstream in depends_on[node] if upstream in place]
            targets[node] = sum(places) / len(places) if places else 0.0
        ordered = tuple(sorted(members, key=targets.__getitem__))
        place |= {node: i / len(ordered) for i, node in enumerate(ordered)}
        yield ordered


def _collect_alike(
    nodes: Iterable[str], keys: Mapping[str, tuple[object, ...]]
) -> list[tuple[str, ...]]:
    """Group the nodes with the same key, if there are enough of them."""
    alike: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for node in nodes:
        alike[keys[node]].append(node)
    return [tuple(members) for members in alike.values() if len(members) >= MIN_GROUP_SIZE]


def fold_graph(
    depends_on: Mapping[str, Sequence[str]], groups: Iterable[NodeGroup]
) -> dict[str, list[str]]:
    """Return the dependencies between boxes; a group has the id of its first member.

    >>> fold_graph({"a": [], "b": [], "c": ["a", "b"]}, [NodeGroup(("a", "b"), True)])
    {'a': [], 'c': ['a']}
    """
    box_of = {node: group.members[0] for group in groups for node in group.members}
    folded: dict[str, dict[str, None]] = {}
    for node, upstreams in depends_on.items():
        box = folded.setdefault(box_of.get(node, node), {})
        box.update(dict.fromkeys(box_of.get(upstream, upstream) for upstream in upstreams))
    return {box: list(upstreams) for box, upstreams in folded.items()}
