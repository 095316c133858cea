# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.artifacts`: the files of inputs and outputs."""

from pathlib import Path
from typing import Self

from toolkit.client._definition_views import ArtifactView
from toolkit.client._graph_view import LineageView
from toolkit.client._replies import Reply
from toolkit.client._resource_calls import DeletableCalls
from toolkit.client._sync.handle import Deletable
from toolkit.client._sync.http import HttpClient
from toolkit.client._sync.resource import Resource
from toolkit.client._wire.transfers import ArtifactDownload, open_source
from toolkit.contract import artifacts
from toolkit.contract.errors import ErrorCode, RequestError


class Artifact(ArtifactView, Deletable[artifacts.Artifact]):
    """An artifact. Up to 4 MiB, it keeps its bytes once read, and a notebook displays it."""

    noun, resource, record_type = "Artifact", "artifacts", artifacts.Artifact

    def content(self) -> bytes:
        """Return the bytes of the artifact, from memory if it is small and was read before."""
        if self._cached_bytes is not None:
            return self._cached_bytes
        data = self._http.request_bytes(f"{self.path}/content")
        if self.is_small:
            self._cached_bytes = data
        return data

    def lineage(self) -> LineageView:
        """Read the jobs and artifacts that the artifact was made from."""
        path = f"{self.path}/lineage"
        return self._http.request_view(LineageView, artifacts.Lineage, "GET", path)

    def delete(self) -> Self:
        """Delete the artifact with its bytes.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` while the work that it is part of is under way.
        """
        super().delete()
        self._cached_bytes = None
        return self

    def text(self) -> str:
        """Read the artifact as UTF-8 text."""
        return (self.content()).decode("utf-8")

    def value(self) -> object:
        """Read the content as a Python value, by its media type: a text, parsed JSON, a table of
        the library that it was made with, or bytes.
        """
        from toolkit.functions.values import read_value

        return read_value(self.content(), self.media_type, self.metadata)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
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
                saving.write_bytes(self._http.request_bytes(place, saving.next_span))
            return saving.finish()


class Artifacts(DeletableCalls[Reply[Artifact]], Resource[Artifact]):
    """`client.artifacts`: read, upload and delete files, and trace their origin."""

    handle = Artifact

    def get(self, id: str) -> Artifact:
        """Read an artifact; if it is small, also its bytes, so that a notebook can display it."""
        artifact = super().get(id)
        if artifact.is_small:
            artifact.content()
        return artifact

    def content(self, id: str) -> bytes:
        """Read the bytes of an artifact.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        return self._http.request_bytes(f"/artifacts/{id}/content")

    def lineage(self, id: str) -> LineageView:
        """Read the jobs and artifacts that an artifact was made from."""
        path = f"/artifacts/{id}/lineage"
        return self._http.request_view(LineageView, artifacts.Lineage, "GET", path)

    def upload(self, source: bytes | str | Path, *, filename: str = "upload") -> Artifact:
        """Upload a file, such as reference audio; its bytes determine its type.

        A file that is given by its path is read while it is sent, so its size takes no memory.
        """
        with open_source(source) as data:
            return self._wrap(
                self._http.request_record(
                    artifacts.Artifact, "POST", "/artifacts", upload=(filename, data)
                )
            )


def read_artifact(http: HttpClient, artifact_id: str | None) -> Artifact:
    """Read an artifact of some work by its id, which may be missing.

    Raises:
        RequestError: `NOT_FOUND` if the id is None or empty, or unknown.
    """
    if not artifact_id:
        raise RequestError(ErrorCode.NOT_FOUND, "There is no artifact yet: wait for the work.")
    return Artifacts(http).get(artifact_id)
