"""Work that a command asked for: started, waited for, and what it made saved."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolkit.cli.files import file_stem
from toolkit.cli.output import Shell
from toolkit.contract.errors import ErrorCode, ToolkitError, WorkError


def started(shell: Shell, work: Any) -> None:
    """Print the id of work that nobody waits for."""
    if shell.as_json:
        shell.show(work)
    else:
        print(work.id)


def waited(shell: Shell, area: str, work: Any, quiet: bool) -> Any:
    """Wait for work, with progress on stderr, and give it back once it is completed.

    Raises:
        WorkError: it failed, was cancelled, or is blocked.
    """
    try:
        work.wait(progress=not quiet, check=False)
    except KeyboardInterrupt:
        shell.note(f"{work.id} is not cancelled. Next: toolkit {area} wait {work.id}")
        raise
    fault = _fault(work)
    if fault is not None:
        if shell.as_json:
            shell.show(work)
        else:
            shell.note(f"See: toolkit {area} show {work.id}")
        raise fault
    return work


def _fault(work: Any) -> ToolkitError | None:
    """What kept work from being completed, if anything did."""
    record = work.record
    if work.status == "blocked":
        from toolkit.display.text import missing_line

        code = ErrorCode.CREDENTIALS_MISSING
        if record.missing_capabilities:
            code = ErrorCode.CAPABILITY_UNAVAILABLE
        return WorkError(
            code,
            f"{missing_line(record.missing)}; once that is there: toolkit tasks resume {work.id}.",
        )
    if work.status not in work.failed:
        return None
    if record.error is None:
        return WorkError(ErrorCode.INTERNAL, f"{work.id} is {work.status}, and does not say why.")
    error: ToolkitError = record.error.to_exception(of_work=True)
    return error


def saved(shell: Shell, artifact_ids: Mapping[str, str], out: Path) -> list[str]:
    """Write artifacts to a folder, each under the name of its node; their paths."""
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    taken: set[str] = set()
    for node_id, artifact_id in artifact_ids.items():
        artifact = shell.client.artifacts.get(artifact_id)
        stem = file_stem(node_id, taken)
        taken.add(stem.lower())
        suffix = Path(artifact.record.filename).suffix
        paths.append(str(artifact.save(out / f"{stem}{suffix}")))
    return paths
