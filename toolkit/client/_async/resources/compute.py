"""`client.compute`: GPU pods."""

from toolkit.client._async.handle import AsyncDeletable
from toolkit.client._async.resource import AsyncDeletableResource
from toolkit.client._infrastructure_views import ComputeView
from toolkit.client._wire.messages import drop_none
from toolkit.contract import compute


class AsyncCompute(ComputeView, AsyncDeletable[compute.Compute]):
    """A GPU pod."""

    noun, resource, record_type = "Compute", "compute", compute.Compute


class AsyncComputes(AsyncDeletableResource[AsyncCompute]):
    """`client.compute`."""

    handle = AsyncCompute

    async def create(
        self,
        name: str,
        gpu_type: str,
        *,
        image: str | None = None,
        storage_id: str | None = None,
        template_id: str | None = None,
    ) -> AsyncCompute:
        """Rent a GPU pod; it is billed by the hour until it is deleted.

        Args:
            name: what to call it.
            gpu_type: a GPU of the catalogue, such as `NVIDIA GeForce RTX 4090`.
            image: the container to run when there is no template; an image worker by default.
            storage_id: a volume to mount; the pod is then where the volume is.
            template_id: a shared template that is for pods.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST`, `NOT_FOUND`, `CONFLICT`.
        """
        return await self._create(
            drop_none(
                name=name,
                gpu_type=gpu_type,
                image=image,
                storage_id=storage_id,
                template_id=template_id,
            )
        )
