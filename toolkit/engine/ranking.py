"""The router's decision: the candidates in order, and the compact form in which it is stored.

Nearly all of a decision is the same words again and again, for some twenty candidates. Stored as it
is shown it would be most of a job's record, so it is packed: a row of values for each candidate,
without the names of the members, compressed. It is spelled out when somebody reads the job.
"""

import zlib
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Annotated, Final, TypedDict

from pydantic import GetPydanticSchema, PlainSerializer, TypeAdapter
from pydantic_core import from_json, to_json
from pydantic_core.core_schema import no_info_after_validator_function

from toolkit.contract.base import Usd
from toolkit.contract.jobs import BreakerState, Routing
from toolkit.contract.money import from_wire_usd, to_wire_usd

# Read as the wire's number, and then exact.
StoredUsd = Annotated[
    Decimal,
    GetPydanticSchema(
        lambda _, handler: no_info_after_validator_function(from_wire_usd, handler(Usd))
    ),
    PlainSerializer(to_wire_usd, return_type=float),
]
# The members of a packed row, in this order. A later one goes to the end: rows that lack it have
# its default, and earlier versions do not look for it.
PACKED_MEMBERS: Final = (
    "provider",
    "model",
    "reason",
    "score",
    "excluded",
    "allowed",
    "connected",
    "affordable",
    "healthy",
    "connection_id",
    "estimated_cost_usd",
    "reservation_usd",
    "max_tokens",
    "latency_p50_ms",
    "latency_p95_ms",
    "error_rate",
    "breaker",
    "quality",
)
_ESTIMATE = PACKED_MEMBERS.index("estimated_cost_usd")
_RESERVATION = PACKED_MEMBERS.index("reservation_usd")
_get_packed_values = attrgetter(*PACKED_MEMBERS)
MAX_UNPACKED = 64  # decisions that are kept spelled out: work that measures the same shares one


@dataclass(slots=True)
class RankedCandidate:
    """A candidate of the router, as `Candidate` describes it; the costs are exact."""

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


@dataclass
class Ranking:
    """The router's decision; the first candidate that is not excluded is called first.

    Jobs share it: nobody changes one that was made.
    """

    policy: str
    candidates: list[RankedCandidate] = field(default_factory=list)

    @cached_property
    def first_choice(self) -> RankedCandidate | None:
        """The candidate that is called first; none where nobody may be called now."""
        return next((c for c in self.candidates if not c.excluded), None)

    @cached_property
    def packed(self) -> str:
        """The form in which it is stored."""
        rows = [_make_packed_row(candidate) for candidate in self.candidates]
        document = to_json([self.policy, rows])
        return b64encode(zlib.compress(document)).decode()

    def to_wire(self) -> Routing:
        """Make the decision that the wire shows."""
        return Routing.model_validate(_RANKING.dump_python(self, exclude_none=True))


_RANKING = TypeAdapter(Ranking)


def _make_packed_row(candidate: RankedCandidate) -> list[object]:
    """Make the row of a candidate, with amounts as the wire has them."""
    row = list(_get_packed_values(candidate))
    row[_ESTIMATE] = to_wire_usd(candidate.estimated_cost_usd)
    row[_RESERVATION] = to_wire_usd(candidate.reservation_usd)
    return row


class UnpackedRanking(TypedDict):
    """A decision as `Routing` describes it, in plain values."""

    policy: str
    candidates: list[dict[str, object]]


@lru_cache(maxsize=MAX_UNPACKED)
def unpack_ranking(packed: str) -> UnpackedRanking:
    """Spell a packed decision out, as `Routing` describes it; whoever reads it changes nothing.

    Raises:
        ValueError: it is damaged.
    """
    try:
        policy, rows = from_json(zlib.decompress(b64decode(packed, validate=True)))
        candidates = [dict(zip(PACKED_MEMBERS, row, strict=False)) for row in rows]
    except (zlib.error, TypeError, ValueError) as error:
        raise ValueError("the packed ranking is damaged") from error
    return {"policy": policy, "candidates": candidates}
