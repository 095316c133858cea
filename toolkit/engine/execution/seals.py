"""Seals: the model and the host that answer all sealed work of a capability (`options.sealed`).

The first successful call fixes the seal, in a row that every process of the service sees.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Self

from toolkit.contract.base import format_rfc3339, now, to_canonical_json
from toolkit.contract.errors import ErrorCode, WorkError
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.job_run import JobRun
from toolkit.engine.execution.store_patience import ask_store
from toolkit.engine.job_record import JobRecord
from toolkit.engine.ranking import RankedCandidate, Ranking
from toolkit.store import Conflict, InsertRow


@dataclass(frozen=True, slots=True)
class Seal:
    """The model that answers the sealed work of one capability.

    Attributes:
        asked: model that the router chose.
        answered: model that the provider named; it may be a dated version of `asked`.
        upstream: host that served the answer, if the provider names it.
    """

    provider: str | None
    asked: str | None
    answered: str | None
    upstream: str | None

    @classmethod
    def of(cls, job: JobRecord, asked: str | None) -> Self:
        """Return the seal that the answer of a job would fix."""
        return cls(job.provider, asked, job.model, job.upstream)

    def __str__(self) -> str:
        host = f" at {self.upstream}" if self.upstream else ""
        return f"`{self.provider}/{self.answered}`{host}"

    def accepts(self, other: "Seal") -> bool:
        """Check whether an answer is by the same model at the same host."""
        return replace(other, asked=self.asked) == self

    def restrict(self, ranking: Ranking) -> Ranking:
        """Exclude all candidates except the sealed model."""
        reason = f"the work is sealed to `{self.provider}/{self.asked}`"
        candidates = [
            c if self._allows(c) else c._replace(excluded=True, allowed=False, reason=reason)
            for c in ranking.candidates
        ]
        return Ranking(ranking.policy, sorted(candidates, key=lambda c: c.excluded))

    def _allows(self, candidate: RankedCandidate) -> bool:
        return (candidate.provider, candidate.model) == (self.provider, self.asked)


async def find_seal(core: EngineContext, job_run: JobRun) -> Seal | None:
    """Find the seal of a job; None if it is not sealed, or no call has fixed the seal yet."""
    if not job_run.job.options.sealed:
        return None
    row = await ask_store(core, core.store.get_row, "seals", _make_id(job_run))
    return None if row is None else Seal(**json.loads(str(row["doc"])))


async def check_answer(core: EngineContext, job_run: JobRun, asked: str | None) -> None:
    """Fix the seal of a job by its first answer, or compare a later answer with the seal.

    Raises:
        WorkError: `SEAL_BROKEN` if a second model or host has answered.
    """
    if not job_run.job.options.sealed:
        return
    answer = Seal.of(job_run.job, asked)
    seal = await find_seal(core, job_run)
    if seal is None:
        row = {
            "id": _make_id(job_run),
            "account_id": job_run.account_id,
            "created_at": format_rfc3339(now()),
            "doc": json.dumps(asdict(answer)),
        }
        try:
            await core.store.write([InsertRow("seals", row)], lease=job_run.lease, conditional=True)
        except Conflict:  # another job was first
            seal = await find_seal(core, job_run)
    if seal is not None and not seal.accepts(answer):
        raise WorkError(
            ErrorCode.SEAL_BROKEN,
            f"{answer} has answered, but the work is sealed to {seal}: use a new seal for it.",
        )


def _make_id(job_run: JobRun) -> str:
    """Make the id of the seal that the job shares: with its run or workflow, or by a name."""
    job, sealed = job_run.job, job_run.job.options.sealed
    shared = sealed if isinstance(sealed, str) else job_run.lease.root_id
    text = to_canonical_json([job_run.account_id, shared, job.capability])
    return hashlib.sha256(text.encode()).hexdigest()
