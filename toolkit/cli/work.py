"""Work that a command started: waiting for it, and saving its results."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from typer import BadParameter

from toolkit.cli.output import ClientOutput
from toolkit.contract.errors import ErrorCode, ServiceError, ToolkitError, WorkError
from toolkit.contract.file_names import get_suffix, make_file_stem


def finish_work(shell: ClientOutput, resource: str, work: Any, no_wait: bool, quiet: bool) -> bool:
    """Wait for new work, or only print its id; return whether it is completed.

    Raises:
        WorkError, ServiceError: as for `wait_for_work`.
    """
    if not no_wait:
        wait_for_work(shell, resource, work, quiet)
    elif shell.as_json:
        shell.print_record(work)
    else:
        print(work.id)
    return not no_wait


def take_up(shell: ClientOutput, work_id: str) -> None:
    """Make an embedded engine resume unfinished work; a server does so by itself."""
    if shell.client.is_held:
        shell.print_note(
            "This data directory is a copy: its unfinished work is held until"
            " `toolkit serve --take-up`."
        )
    shell.client.take_up(work_id)


def wait_for_work(shell: ClientOutput, resource: str, work: Any, quiet: bool) -> Any:
    """Wait for work, with progress on stderr, and return it once it is completed.

    Raises:
        WorkError: it failed, was cancelled, or is blocked.
        ServiceError: the service is away for longer than it is waited for.
    """
    if not quiet:
        shell.print_note(work.id)  # first, so that the work can be found even after a failure
    try:
        work.wait(progress=not quiet, check=False)
    except KeyboardInterrupt:
        shell.print_note(f"{work.id} is not cancelled. Next: toolkit {resource} wait {work.id}")
        raise
    except ServiceError:
        shell.print_note(f"{work.id} has been accepted. Next: toolkit {resource} wait {work.id}")
        raise
    fault = _find_fault(work)
    if fault is not None:
        if shell.as_json:
            shell.print_record(work)
        else:
            shell.print_note(f"See: toolkit {resource} show {work.id}")
        raise fault
    for warning in getattr(work.record, "warnings", ()):
        shell.print_note(f"Warning: {warning}")
    return work


def _find_fault(work: Any) -> ToolkitError | None:
    """Return the error that prevented the completion of work, if any."""
    record = work.record
    if work.status == "blocked":
        from toolkit.display.text import format_missing

        if record.question is not None:
            return WorkError(
                ErrorCode.INVALID_REQUEST,
                f"{record.question} Answer: toolkit tasks resume {work.id} --answer TEXT",
            )
        code = ErrorCode.CREDENTIALS_MISSING
        if record.missing_capabilities:
            code = ErrorCode.CAPABILITY_UNAVAILABLE
        return WorkError(
            code, f"{format_missing(record.missing)}. Then run: toolkit tasks resume {work.id}"
        )
    if work.status not in work.failed:
        return None
    if record.error is None:
        return WorkError(
            ErrorCode.INTERNAL, f"{work.id} is {work.status} without an error message."
        )
    error: ToolkitError = record.error.to_exception(of_work=True)
    return error


def make_folder(folder: Path) -> None:
    """Create the folder for results, with its parents, if it does not exist.

    Raises:
        BadParameter: the folder is not writable.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BadParameter(f"{folder}: {error.strerror}", param_hint="--out") from None


def save_artifacts(shell: ClientOutput, artifact_ids: Mapping[str, str], out: Path) -> list[str]:
    """Write artifacts to a folder, each under the name of its node, and return their paths."""
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    stems: set[str] = set()
    for node_id, artifact_id in artifact_ids.items():
        artifact = shell.client.artifacts.get(artifact_id)
        stem = make_file_stem(node_id, stems)
        stems.add(stem.lower())
        suffix = get_suffix(artifact.record.media_type)
        paths.append(str(artifact.save(out / f"{stem}{suffix}")))
    return paths
