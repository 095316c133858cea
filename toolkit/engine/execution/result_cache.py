"""The cache of results, for runs that ask for it (`options.cache`).

The key of a result contains everything that it depends on: the capability and its version, the
input, the bytes that came from upstream, and the provider and model that would be called now. Ids,
names and times are not part of the key, so a notebook that runs again finds its earlier results.

Of equal jobs at the same time one works and the others wait for its result: in one process by a
lock, and across processes by a claim. A claim is a row of the same table that names the working
job. It ends in the transaction that ends its job, and is void once no process leases that job.
"""

import asyncio
import hashlib
import json
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from toolkit.contract.base import format_rfc3339, now
from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.job_run import JobRun
from toolkit.engine.execution.seals import Seal, find_seal
from toolkit.engine.job_record import JobRecord, read_job
from toolkit.engine.routing.router import route
from toolkit.engine.services.artifacts import Artifacts, StoredArtifact
from toolkit.plugins import Call
from toolkit.store import AccountScope, Conflict, DeleteRow, InsertRow, ReplaceRow

CLAIM_PREFIX = "claim:"
# Seconds between two checks of another process's claim; calls to vendors take about as long.
FIRST_LOOK_S, MAX_LOOK_S = 0.05, 1.0


class CachedResult(NamedTuple):
    """A job that made a result, and the artifact with its bytes."""

    job: JobRecord
    artifact: StoredArtifact


class CacheTurn(NamedTuple):
    """The answer of the cache to a job that looks up its key.

    Attributes:
        cached: the result, if there is one.
        is_waiting: True while another job makes the result; without either, the caller is to make
            it.
    """

    cached: CachedResult | None = None
    is_waiting: bool = False


class ResultCache:
    """The cache that finds the job with an equal result, and records reusable results."""

    def __init__(self, core: EngineContext, artifacts: Artifacts) -> None:
        self._core = core
        self._artifacts = artifacts
        # A lock exists as long as a job holds it or waits for it.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def get_lock(self, key: str) -> asyncio.Lock:
        """Return the lock of a key: jobs that would have the same result wait for the first."""
        return self._locks.setdefault(key, asyncio.Lock())

    async def find_key(self, job_run: JobRun, call: Call[Any]) -> str:
        """Make the key of a job's result by the provider and model that would be called now."""
        provider, model = await self._find_first_choice(job_run, call)
        return self.make_key(job_run, call, provider, model)

    def make_key(
        self, job_run: JobRun, call: Call[Any], provider: str | None, model: str | None
    ) -> str:
        """Make the key of a job's result by a provider and model."""
        settings = self._core.settings.vendors.get(provider or "")
        options = job_run.job.options
        parts = {
            "account": job_run.account_id,
            "capability": job_run.capability.name,
            "input": call.input.model_dump(mode="json"),
            "state": job_run.state,
            "upstream": [
                [up.node_id, job_run.upstream[up.node_id].artifact.sha256] for up in call.upstream
            ],
            "provider": provider,
            "model": model,
            "hosts": settings.base_urls if settings else {},
            "place": [options.endpoint_id, options.compute_id],
            "simulated": self._core.settings.sandbox,
        }
        document = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
        for artifact_id, digest in job_run.digests.items():
            document = document.replace(artifact_id, digest)
        return hashlib.sha256(document.encode()).hexdigest()

    async def find_or_claim(self, key: str, job_run: JobRun) -> CacheTurn:
        """Find the account's result of this key, or claim the key for `job_run`.

        If another job makes the result, the caller releases the key's lock and looks again later:
        this process may take over that job, which then needs the lock.
        """
        cached = await self.find(key, job_run)
        if cached is not None:
            return CacheTurn(cached)
        if not await self._claim(key, job_run):
            return CacheTurn(is_waiting=True)
        # The job that held the claim may have ended between the two looks.
        return CacheTurn(await self.find(key, job_run))

    async def _claim(self, key: str, job_run: JobRun) -> bool:
        """Claim a key for a job; return False if another job has the claim and is worked on.

        A claim whose job ended or was abandoned is replaced. Another claim of this job is deleted.
        """
        store, claim_id = self._core.store, CLAIM_PREFIX + key
        if job_run.cache_claim not in (None, claim_id):
            await store.write([DeleteRow("cache", job_run.cache_claim)], lease=job_run.lease)
            job_run.cache_claim = None
        row = await store.get_row("cache", claim_id)
        if row is None:
            claim = InsertRow("cache", self._make_row(claim_id, job_run))
            try:
                await store.write([claim], lease=job_run.lease, conditional=True)
            except Conflict:
                return False
        elif row["job_id"] != job_run.job.id:
            holder = str(row["job_id"])
            if await self._is_worked_on(holder):
                return False
            if not await store.replace_cache_claim(claim_id, holder, job_run.job.id):
                return False
        job_run.cache_claim = claim_id
        return True

    async def _is_worked_on(self, job_id: str) -> bool:
        """Return True if the job has not ended and a process holds its lease."""
        store = self._core.store
        job = await store.get_row("jobs", job_id)
        if job is None or job["status"] in FINAL_STATUSES:
            return False
        root = await store.get_row("roots", str(job["root_id"]))
        if root is None or not root["open"]:
            return False
        return not await store.leases.is_abandoned(str(job["root_id"]))

    async def find(self, key: str, job_run: JobRun) -> CachedResult | None:
        """Return the account's result of this key, or None if its job or its bytes are gone.

        Sealed work takes the results of its sealed model only.
        """
        # The key covers the account too; the scope holds even if a later key forgets it.
        scope = AccountScope(job_run.account_id)
        cached = await self._core.store.find_owned_row("cache", scope, key)
        if cached is None:
            return None
        row = await self._core.store.find_owned_row("jobs", scope, str(cached["job_id"]))
        if row is None:
            return None
        job = read_job(row)
        if job_run.job.options.sealed and job.provider is not None:
            seal = await find_seal(self._core, job_run)
            if seal is None or not seal.accepts(Seal.of(job, seal.asked)):
                return None
        artifact = await self._artifacts.find_intact(scope, job.artifact_id)
        return None if artifact is None else CachedResult(job, artifact)

    def make_put(self, key: str, job_run: JobRun) -> ReplaceRow:
        """Make the change that records a completed job as the key's result, replacing any other."""
        return ReplaceRow("cache", self._make_row(key, job_run))

    @staticmethod
    def _make_row(row_id: str, job_run: JobRun) -> dict[str, object]:
        return {
            "id": row_id,
            "account_id": job_run.account_id,
            "job_id": job_run.job.id,
            "created_at": format_rfc3339(now()),
        }

    async def _find_first_choice(
        self, job_run: JobRun, call: Call[Any]
    ) -> tuple[str | None, str | None]:
        capability = job_run.capability
        if capability.operation is None or not call.has_operation:
            return None, None
        providers = await self._core.directory.find_providers(
            AccountScope(job_run.account_id), capability, job_run.job.options
        )
        operation = capability.estimate(call.input)
        ranking = route(capability, job_run.job.options, operation, providers)
        seal = await find_seal(self._core, job_run)
        first = (ranking if seal is None else seal.restrict(ranking)).first_choice
        return (first.provider, first.model) if first else (None, None)
