"""The router's decision: the candidates in order, and the compact form in which it is stored.

Decisions repeat the same words for some twenty candidates. In its wire form, a decision would be
most of a job's record. So it is packed: compressed rows of values, one for each candidate, without
the names of the members. It is unpacked when the job is read.
"""

import zlib
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Annotated, NamedTuple, TypedDict

from pydantic import GetPydanticSchema, PlainSerializer
from pydantic_core import from_json, to_json
from pydantic_core.core_schema import no_info_after_validator_function

from toolkit.contract.base import Usd
from toolkit.contract.choices import OfferedTier
from toolkit.contract.jobs import BreakerState, Routing
from toolkit.contract.money import from_wire_usd, to_wire_usd

# Read from the API's number, then converted to an exact amount.
StoredUsd = Annotated[
    Decimal,
    GetPydanticSchema(
        lambda _, handler: no_info_after_validator_function(from_wire_usd, handler(Usd))
    ),
    PlainSerializer(to_wire_usd, return_type=float),
]
# Why a candidate was not considered. `POST /v1/route` shows them, the record of a job does not.
NOT_CONNECTED, OTHER_MODEL = "not connected", "not its default model"
MAX_UNPACKED = 64  # unpacked decisions to cache: jobs with the same measurements share a decision
# More than the work that starts at a time, which may need its ranking again after its admission.
MAX_RANKINGS = 256


class RankedCandidate(NamedTuple):
    """A candidate of the router, as `Candidate` describes it; the costs are exact.

    It is stored as a row of these members, in this order. A new member goes to the end: rows that
    lack it have its default.
    """

    provider: str
    reason: str
    model: str | None = None
    score: float | None = None
    excluded: bool = False
    allowed: bool = True
    connected: bool = True
    affordable: bool = True
    healthy: bool = True
    connection_id: str | None = None
    estimated_cost_usd: StoredUsd | None = None
    reservation_usd: StoredUsd | None = None
    max_tokens: int | None = None
    latency_p50_ms: float | None = None
    latency_p95_ms: float | None = None
    error_rate: float | None = None
    breaker: BreakerState = "closed"
    quality: int | None = None
    tier: OfferedTier = "standard"


PACKED_MEMBERS = RankedCandidate._fields
_FIRST_AMOUNT = PACKED_MEMBERS.index("estimated_cost_usd")
_PAST_AMOUNTS = PACKED_MEMBERS.index("reservation_usd") + 1


@cache
def _load_words() -> bytes:
    """Load the words of which decisions are made, as a compression dictionary.

    The file never changes, because data packed with it cannot be read with another file.
    """
    text = (Path(__file__).parent / "ranking_words.txt").read_text(encoding="utf-8")
    return text.replace("\n", "").encode()


class UnpackedRanking(TypedDict):
    """A decision as `Routing` describes it, in plain values."""

    policy: str
    candidates: list[dict[str, object]]


@dataclass
class Ranking:
    """The router's decision; the first candidate that is not excluded is called first.

    Jobs share it, so it must never be changed.
    """

    policy: str
    candidates: list[RankedCandidate] = field(default_factory=list)

    @cached_property
    def first_choice(self) -> RankedCandidate | None:
        """The candidate that is called first; None if no candidate may be called now."""
        return next((c for c in self.candidates if not c.excluded), None)

    @cached_property
    def packed(self) -> bytes:
        """The decision in the compressed form that is stored."""
        document = to_json([self.policy, self._rows])
        packer = zlib.compressobj(zdict=_load_words())
        return packer.compress(document) + packer.flush()

    @cached_property
    def wire(self) -> Routing:
        """The decision as the API shows it; readers must not change it."""
        return Routing.model_validate(_name_members(self.policy, self._rows))

    @cached_property
    def _rows(self) -> list[tuple[object, ...]]:
        """The candidates, with amounts as the API has them."""
        return [
            (
                *candidate[:_FIRST_AMOUNT],
                to_wire_usd(candidate.estimated_cost_usd),
                to_wire_usd(candidate.reservation_usd),
                *candidate[_PAST_AMOUNTS:],
            )
            for candidate in self.candidates
        ]


class RankingCache:
    """A cache of rankings, of all accounts; a new ranking evicts the oldest.

    A key includes everything that a ranking depends on, even the routing table. So an entry never
    becomes wrong, and entries of an old table are never found again.
    """

    def __init__(self) -> None:
        self._rankings: dict[Hashable, Ranking] = {}

    def __len__(self) -> int:
        """Return the number of cached rankings."""
        return len(self._rankings)

    def find(self, key: Hashable, make: Callable[[], Ranking]) -> Ranking:
        """Return the ranking of a key, making it if it is missing."""
        ranking = self._rankings.get(key)
        if ranking is None:
            ranking = make()
            if len(self._rankings) >= MAX_RANKINGS:
                del self._rankings[next(iter(self._rankings))]
            self._rankings[key] = ranking
        return ranking


@lru_cache(maxsize=MAX_UNPACKED)  # a packed decision never changes
def read_routing(packed: bytes) -> Routing:
    """Read a packed decision as the API shows it; readers must not change it.

    Raises:
        ValueError: if it is damaged.
    """
    return Routing.model_validate(unpack_ranking(packed))


def unpack_ranking(packed: bytes) -> UnpackedRanking:
    """Unpack a packed decision.

    Raises:
        ValueError: if it is damaged.
    """
    try:
        unpacker = zlib.decompressobj(zdict=_load_words())
        policy, rows = from_json(unpacker.decompress(packed))
        return _name_members(policy, rows)
    except (zlib.error, TypeError, ValueError) as error:
        raise ValueError("the packed ranking is damaged") from error


def _name_members(policy: str, rows: Iterable[Iterable[object]]) -> UnpackedRanking:
    """Return the values of each row with the names of their members."""
    candidates = [dict(zip(PACKED_MEMBERS, row, strict=False)) for row in rows]
    return {"policy": policy, "candidates": candidates}
