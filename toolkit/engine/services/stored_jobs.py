"""Jobs as they are stored, which keep what upstream gave apart from their input.

On the wire it stands in the input, as the specification says. The store keeps the two apart, as
every version has: a process of an earlier one may go on with the job, and a node's input stays
what its capability's schema describes.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from toolkit.contract.jobs import FROM_ARTIFACTS, Job


class StoredJob(Job):
    """A job with the artifacts that it works from.

    Attributes:
        from_artifacts: their ids, by the id of the upstream node.
    """

    from_artifacts: dict[str, str] = Field(default_factory=dict)

    def to_record(self) -> Job:
        """Make the record that the wire shows."""
        fields = {name: value for name, value in self if name != FROM_ARTIFACTS}
        if self.from_artifacts:
            fields["input"] = {**self.input, FROM_ARTIFACTS: self.from_artifacts}
        return Job.model_construct(**fields)


def read_job(row: Mapping[str, Any]) -> StoredJob:
    """Read a row of the store, of this version or an earlier one."""
    return StoredJob.model_validate_json(str(row["doc"]))
