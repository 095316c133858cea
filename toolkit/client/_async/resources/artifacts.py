"""`client.artifacts`: the files of inputs and outputs."""

from pathlib import Path
from typing import Self

from toolkit.client._async.handle import AsyncDeletable
from toolkit.client._async.http import AsyncHttpClient
from toolkit.client._async.resource import AsyncResource
from toolkit.client._definition_views import ArtifactView
from toolkit.client._graph_view import LineageView
from toolkit.client._replies import AsyncReply
from toolkit.client._resource_calls import DeletableCalls
from toolkit.client._wire.transfers import ArtifactDownload, open_source
from toolkit.contract import artifacts
from toolkit.contract.errors import ErrorCode, RequestError


class AsyncArtifact(ArtifactView, AsyncDeletable[artifacts.Artifact]):
    """An artifact. Up to 4 MiB, it keeps its bytes once read, and a notebook displays it."""

    noun, resource, record_type = "Artifact", "artifacts", artifacts.Artifact

    async def content(self) -> bytes:
        """Return the bytes of the artifact, from memory if it is small and was read before."""
        if self._cached_bytes is not None:
            return self._cached_bytes
        data = await self._http.request_bytes(f"{self.path}/content")
        if self.is_small:
            self._cached_bytes = data
        return data

    async def lineage(self) -> LineageView:
        """Read the jobs and artifacts that the artifact was made from."""
        path = f"{self.path}/lineage"
        return await self._http.request_view(LineageView, artifacts.Lineage, "GET", path)

    async def delete(self) -> Self:
        """Delete the artifact with its bytes.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` while the work that it is part of is under way.
        """
        await super().delete()
        self._cached_bytes = None
        return self

    async def text(self) -> str:
        """Read the artifact as UTF-8 text."""
        return (await self.content()).decode("utf-8")

    async def value(self) -> object:
        """Read the content as a Python value, by its media type: a text, parsed JSON, a table of
        the library that it was made with, or bytes.
        """
        from toolkit.functions.values import read_value

        return read_value(await self.content(), self.media_type, self.metadata)

    async def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the artifact to a file, completely or not at all, and return the path of the file.

        In a folder, the file has a safe form of the artifact's name, and replaces another file only
        with `overwrite`. A file named by the caller is always replaced.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` if the folder has another file of that name.
            ServiceError: `UNAVAILABLE` if the received bytes are damaged.
        """
        with ArtifactDownload(path, self.record, overwrite=overwrite) as saving:
            if self._cached_bytes is not None:
                saving.write_bytes(self._cached_bytes)
            while not saving.is_complete:
                place = f"{self.path}/content"
                saving.write_bytes(await self._http.request_bytes(place, saving.next_span))
            return saving.finish()


class AsyncArtifacts(DeletableCalls[AsyncReply[AsyncArtifact]], AsyncResource[AsyncArtifact]):
    """`client.artifacts`: read, upload and delete files, and trace their origin."""

    handle = AsyncArtifact

    async def get(self, id: str) -> AsyncArtifact:
        """Read an artifact; if it is small, also its bytes, so that a notebook can display it."""
        artifact = await super().get(id)
        if artifact.is_small:
            await artifact.content()
        return artifact

    async def content(self, id: str) -> bytes:
        """Read the bytes of an artifact.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        return await self._http.request_bytes(f"/artifacts/{id}/content")

    async def lineage(self, id: str) -> LineageView:
        """Read the jobs and artifacts that an artifact was made from."""
        path = f"/artifacts/{id}/lineage"
        return await self._http.request_view(LineageView, artifacts.Lineage, "GET", path)

    async def upload(
        self, source: bytes | str | Path, *, filename: str = "upload"
    ) -> AsyncArtifact:
        """Upload a file, such as reference audio; its bytes determine its type.

        A file that is given by its path is read while it is sent, so its size takes no memory.
        """
        with open_source(source) as data:
            return self._wrap(
                await self._http.request_record(
                    artifacts.Artifact, "POST", "/artifacts", upload=(filename, data)
                )
            )


async def read_artifact(http: AsyncHttpClient, artifact_id: str | None) -> AsyncArtifact:
    """Read an artifact of some work by its id, which may be missing.

    Raises:
        RequestError: `NOT_FOUND` if the id is None or empty, or unknown.
    """
    if not artifact_id:
        raise RequestError(ErrorCode.NOT_FOUND, "There is no artifact yet: wait for the work.")
    return await AsyncArtifacts(http).get(artifact_id)
