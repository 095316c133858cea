"""Lineage: the jobs and artifacts that an artifact came from, traced back through the store."""

from collections import deque
from collections.abc import Mapping

from toolkit.contract.artifacts import Artifact, Lineage, LineageJob
from toolkit.contract.errors import RequestError
from toolkit.contract.ids import Prefix, is_id
from toolkit.engine.context import EngineContext
from toolkit.engine.job_record import read_job
from toolkit.engine.request_context import RequestContext
from toolkit.engine.services.artifacts import Artifacts

MAX_JOBS = 1_000


class Lineages:
    """`/v1/artifacts/{id}/lineage`."""

    def __init__(self, core: EngineContext, artifacts: Artifacts) -> None:
        self._core = core
        self._artifacts = artifacts

    async def get(self, context: RequestContext, artifact_id: str) -> Lineage:
        """Return the jobs and artifacts that an artifact came from.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        await self._artifacts.get(context, artifact_id)
        lineage = Lineage(id=artifact_id)
        waiting, seen = deque([artifact_id]), {artifact_id}
        while waiting and len(lineage.jobs) < MAX_JOBS:
            artifact = await self._find_artifact(context, waiting.popleft())
            if artifact is None:
                continue
            lineage.artifacts.append(artifact)
            job = await self._find_job(context, artifact)
            if job is None:
                continue
            lineage.jobs.append(job)
            taken = dict.fromkeys(job.from_artifacts.values())
            waiting.extend(each for each in taken if each not in seen)
            seen.update(taken)
        lineage.complete = not waiting
        return lineage

    async def _find_artifact(self, context: RequestContext, artifact_id: str) -> Artifact | None:
        try:
            return await self._artifacts.get(context, artifact_id)
        except RequestError:
            return None

    async def _find_job(self, context: RequestContext, artifact: Artifact) -> LineageJob | None:
        """Find the job that made an artifact; none for an upload, or where it was pruned."""
        row = await self._core.store.get_row("jobs", artifact.job_id or "")
        if row is None or row["account_id"] != context.account_id:
            return None
        job = read_job(row)
        return LineageJob(
            artifact_id=artifact.id,
            from_artifacts={**job.from_artifacts, **_find_artifact_ids(job.input)},
            **{
                name: getattr(job, name)
                for name in LineageJob.model_fields.keys() - {"artifact_id", "from_artifacts"}
            },
        )


def _find_artifact_ids(given: Mapping[str, object]) -> dict[str, str]:
    """Find the artifact ids that an input names, by its fields."""
    return {
        field: value
        for field, value in given.items()
        if isinstance(value, str) and is_id(value, Prefix.ARTIFACT)
    }
