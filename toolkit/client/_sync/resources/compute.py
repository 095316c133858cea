# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.compute`: GPU pods."""

from toolkit.client._infrastructure_views import ComputeView
from toolkit.client._sync.handle import Deletable
from toolkit.client._sync.resource import DeletableResource
from toolkit.client._wire.messages import drop_none
from toolkit.contract import compute


class Compute(ComputeView, Deletable[compute.Compute]):
    """A GPU pod."""

    noun, resource, record_type = "Compute", "compute", compute.Compute


class Computes(DeletableResource[Compute]):
    """`client.compute`."""

    handle = Compute

    def create(
        self,
        name: str,
        gpu_type: str,
        *,
        image: str | None = None,
        storage_id: str | None = None,
        template_id: str | None = None,
    ) -> Compute:
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
        return self._create(
            drop_none(
                name=name,
                gpu_type=gpu_type,
                image=image,
                storage_id=storage_id,
                template_id=template_id,
            )
        )
