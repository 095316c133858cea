"""Combinations of values such that every two values of different fields meet in one of them."""

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import TypeVar

T = TypeVar("T")


def pairwise(fields: Mapping[str, Sequence[T]]) -> list[dict[str, T]]:
    """Rows that together have each pair of values of each two fields; far fewer than all rows.

    Greedy: the next row is the one that has the most pairs which no row has had.

    >>> rows = pairwise({"a": [1, 2], "b": [1, 2], "c": [1, 2]})
    >>> len(rows) < 8
    True
    """
    names = list(fields)
    left = {
        (one, i, other, j)
        for one, other in combinations(names, 2)
        for i, j in product(range(len(fields[one])), range(len(fields[other])))
    }
    every = list(product(*(range(len(fields[name])) for name in names)))

    def pairs(row: tuple[int, ...]) -> set[tuple[str, int, str, int]]:
        placed = zip(names, row, strict=True)
        return {(a, i, b, j) for (a, i), (b, j) in combinations(placed, 2)}

    rows: list[dict[str, T]] = []
    while left:
        best = max(every, key=lambda row: len(pairs(row) & left))
        left -= pairs(best)
        rows.append({name: fields[name][i] for name, i in zip(names, best, strict=True)})
    return rows
