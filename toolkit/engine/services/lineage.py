"""Lineage: the jobs and artifacts that an artifact was made from, read from the store."""

from collections import deque
from collections.abc import Mapping

from toolkit.contract.artifacts import Artifact, Lineage, LineageJob
from toolkit.contract.ids import Prefix, is_id
from toolkit.contract.jobs import FROM_ARTIFACTS
from toolkit.engine.context import EngineContext
from toolkit.engine.request_context import RequestContext

MAX_JOBS = 1_000


class Lineages:
    """The operation of `/v1/artifacts/{id}/lineage`."""

    def __init__(self, core: EngineContext) -> None:
        self._core = core

    async def get(self, context: RequestContext, artifact_id: str) -> Lineage:
        """Return the jobs and artifacts that an artifact was made from, directly or indirectly.

        After `MAX_JOBS` jobs it stops, and the result is not `complete`.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        artifacts = self._core.records.artifacts
        await artifacts.get(context.scope, artifact_id)
        lineage = Lineage(id=artifact_id)
        waiting, seen = deque([artifact_id]), {artifact_id}
        while waiting and len(lineage.jobs) < MAX_JOBS:
            artifact = await artifacts.find(context.scope, waiting.popleft())
            if artifact is None:
                continue
            lineage.artifacts.append(artifact)
            job = await self._find_job(context, artifact)
            if job is None:
                continue
            lineage.jobs.append(job)
            source_ids = dict.fromkeys(job.from_artifacts.values())
            waiting.extend(source_id for source_id in source_ids if source_id not in seen)
            seen.update(source_ids)
        lineage.complete = not waiting
        return lineage

    async def _find_job(self, context: RequestContext, artifact: Artifact) -> LineageJob | None:
        """Find the job that made an artifact; None for an upload, or if the job was pruned."""
        job = await self._core.records.jobs.find(context.scope, artifact.job_id or "")
        if job is None:
            return None
        return LineageJob(
            artifact_id=artifact.id,
            from_artifacts=_find_artifact_ids(job.input),
            **{
                name: getattr(job, name)
                for name in LineageJob.model_fields.keys() - {"artifact_id", "from_artifacts"}
            },
        )


def _find_artifact_ids(job_input: Mapping[str, object]) -> dict[str, str]:
    """Find the artifact ids in an input, by the upstream node or by the input field."""
    by_field = {
        field: value
        for field, value in job_input.items()
        if isinstance(value, str) and is_id(value, Prefix.ARTIFACT)
    }
    upstream = job_input.get(FROM_ARTIFACTS)
    return {**_find_artifact_ids(upstream), **by_field} if isinstance(upstream, dict) else by_field
