"""The rankings that were made lately: work that measures the same is ranked once."""

from collections.abc import Callable, Hashable

from toolkit.engine.ranking import Ranking

# Of some 40 kB each. More than the work that is begun at a time, which asks twice: when it is
# admitted, and at its first attempt.
MAX_RANKINGS = 256


class RankingCache:
    """A cache of rankings, of all accounts; the oldest makes room for a new one.

    A key names all that a ranking follows from, the routing table itself included: so what is in
    here never grows wrong, and what is of a table that is gone is not found again.
    """

    def __init__(self) -> None:
        self._rankings: dict[Hashable, Ranking] = {}

    def __len__(self) -> int:
        """Return how many are kept."""
        return len(self._rankings)

    def find(self, key: Hashable, make: Callable[[], Ranking]) -> Ranking:
        """Return the ranking of a key, which is made unless it is there."""
        ranking = self._rankings.get(key)
        if ranking is None:
            ranking = make()
            if len(self._rankings) >= MAX_RANKINGS:
                del self._rankings[next(iter(self._rankings))]
            self._rankings[key] = ranking
        return ranking
