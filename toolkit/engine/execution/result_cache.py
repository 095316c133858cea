"""The cache of results, for runs that ask for it (`options.cache`).

The key of a result is all that it depends on: the capability and its version, the input, the bytes
that came from upstream, and the provider and model that would be called now. Ids, names and times
are no part of it, so a notebook that is run again finds what it made before.
"""

import hashlib
import json
from typing import Any

from toolkit.contract.base import format_rfc3339, now
from toolkit.engine.concurrency.keyed_lock import KeyedLock
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.job_run import JobRun
from toolkit.engine.job_record import JobRecord, read_job
from toolkit.engine.routing.router import route
from toolkit.plugins import Call
from toolkit.store import AccountScope, ReplaceRow


class ResultCache:
    """The cache that finds the job with an equal result, and records those that may be reused."""

    def __init__(self, core: EngineContext) -> None:
        self._core = core
        # Jobs that would have the same result wait for the first of them.
        self.locks = KeyedLock()

    async def find_key(self, job_run: JobRun, call: Call[Any]) -> str:
        """Find the key that the result of a job would have as of now."""
        provider, model = await self._find_first_choice(job_run, call)
        return self.make_key(job_run, call, provider, model)

    def make_key(
        self, job_run: JobRun, call: Call[Any], provider: str | None, model: str | None
    ) -> str:
        """Make the key of a job's result by a provider and model."""
        settings = self._core.settings.vendors.get(provider or "")
        options = job_run.job.options
        known = {
            "account": job_run.account_id,
            "capability": job_run.capability.name,
            "input": {**call.input.model_dump(mode="json"), **job_run.digests},
            "upstream": [
                [up.node_id, job_run.upstream[up.node_id].artifact.sha256] for up in call.upstream
            ],
            "provider": provider,
            "model": model,
            "hosts": settings.base_urls if settings else {},
            "place": [options.endpoint_id, options.compute_id],
            "simulated": job_run.is_simulated,
        }
        spelled = json.dumps(known, sort_keys=True, separators=(",", ":"), default=str)
        return hashlib.sha256(spelled.encode()).hexdigest()

    async def find(self, key: str) -> JobRecord | None:
        """Find the job with the result of this key; none if there is none."""
        row = await self._core.store.get_row("cache", key)
        found = None if row is None else await self._core.store.get_row("jobs", str(row["job_id"]))
        return None if found is None else read_job(found)

    def make_put(self, key: str, job_run: JobRun) -> ReplaceRow:
        """Record a completed job, in place of one that had the same result."""
        row: dict[str, object] = {
            "id": key,
            "account_id": job_run.account_id,
            "job_id": job_run.job.id,
            "created_at": format_rfc3339(now()),
        }
        return ReplaceRow("cache", row)

    async def _find_first_choice(
        self, job_run: JobRun, call: Call[Any]
    ) -> tuple[str | None, str | None]:
        """Find the provider and model that the router would choose first now."""
        capability = job_run.capability
        if capability.operation is None or not call.has_operation:
            return None, None
        providers = await self._core.find_providers(
            AccountScope(job_run.account_id), capability, job_run.job.options
        )
        operation = capability.estimate(call.input)
        first = route(capability, job_run.job.options, operation, providers).first_choice
        return (first.provider, first.model) if first else (None, None)
