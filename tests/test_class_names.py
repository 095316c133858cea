"""One class, one name: a word in a traceback or a review leads to one place."""

import ast
from collections import defaultdict

from tests.support.source_trees import PACKAGE, parse_folder

HANDLES = (
    PACKAGE / "client" / "_sync"
)  # generated: callers know handles by the names of their records


def test_no_two_classes_share_a_name() -> None:
    """Given the sources, then the name of each class is its own."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, tree in parse_folder(PACKAGE).items():
        if HANDLES in path.parents:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
