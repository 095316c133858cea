"""Scenario notebooks, each executed once by papermill, and compared as nbval compares."""

import json
import warnings
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbval.plugin import (
    IPyNbCell,
    coalesce_streams,
    find_metadata_tags,
    get_sanitize_patterns,
    nocolors,
)

ROOT = Path(__file__).parent.parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
SANITIZE = ROOT / "notebooks" / "nbval.cfg"
CELL_TIMEOUT_S = 120


def execute(notebook: Path, folder: Path, parameters: dict[str, Any]) -> Path:
    """Have papermill run a notebook in an empty folder; what it left is in `folder`."""
    made = folder / notebook.name
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")  # deprecations inside papermill and its kernel client
        from jupyter_client.manager import KernelManager
        from papermill.execute import execute_notebook

        # By files: a free TCP port may be taken by the time that the kernel asks for it.
        patch.setattr(KernelManager.transport, "default_value", "ipc")
        execute_notebook(
            str(notebook),
            str(made),
            parameters=parameters,
            cwd=str(folder),
            kernel_name="python3",
            progress_bar=False,
            execution_timeout=CELL_TIMEOUT_S,
            extra_arguments=["--IPKernelApp.log_level=ERROR"],
        )
    return made


class Rules:
    """The rules by which nbval compares two outputs of a cell, without running it a second time."""

    compare_outputs = IPyNbCell.compare_outputs
    skip_compare = (
        "metadata", "traceback", "prompt_number", "output_type", "name", "execution_count",
        "application/vnd.jupyter.widget-view+json", "image/png", "image/jpeg",
    )  # fmt: skip
    colors = nocolors

    def __init__(self) -> None:
        self.parent = self
        self.sanitize_patterns = dict(get_sanitize_patterns(SANITIZE.read_text(encoding="utf-8")))
        self.comparison_traceback: list[str] = []

    def sanitize(self, text: object) -> object:
        """A text without what differs from run to run."""
        return IPyNbCell.sanitize(self, text)

    def format_output_compare(self, key: str, left: object, right: object) -> None:
        """Keep what differs, for the message."""
        self.comparison_traceback.append(f"{key}: committed {left!r}\n now {right!r}")


def find_differences(committed: Path, made: Path) -> list[str]:
    """The cells whose outputs are not as they are committed, each with what differs."""
    before, after = (nbformat.read(path, as_version=4).cells for path in (committed, made))
    # What papermill injects has no counterpart.
    after = [cell for cell in after if "injected-parameters" not in cell.metadata.get("tags", [])]
    assert [cell.source for cell in before] == [cell.source for cell in after]
    found = []
    for old, new in zip(before, after, strict=True):
        options = dict(find_metadata_tags(old.metadata))
        if old.cell_type != "code" or options.get("check") is False:
            continue
        rules = Rules()
        outputs = coalesce_streams(new.outputs)
        if not rules.compare_outputs(outputs, coalesce_streams(old.outputs)):
            found.append(f"{old.id}: " + " ".join(rules.comparison_traceback))
    return found


def list_outputs(notebook: Path) -> list[dict[str, Any]]:
    """Every output of a notebook as the file has it."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [output for cell in cells for output in cell.get("outputs", [])]
