"""Class names are unique, so that a name in a traceback or a review identifies one class."""

import ast
from collections import defaultdict

from tests.support.source_trees import PACKAGE, parse_folder

HANDLES = (
    PACKAGE / "client" / "_sync"
)  # generated: callers know handles by the names of their records


def test_class_names_are_unique() -> None:
    """Given the sources, then no two classes have the same name."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, tree in parse_folder(PACKAGE).items():
        if HANDLES in path.parents:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}
