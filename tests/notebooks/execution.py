"""Execution of scenario notebooks by papermill, and comparison of their outputs as by nbval."""

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
    """Run a notebook by papermill in an empty folder, and return the path of the result there."""
    result = folder / notebook.name
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")  # deprecations inside papermill and its kernel client
        from jupyter_client.manager import KernelManager
        from papermill.execute import execute_notebook

        # Kernels use files, because a free TCP port may be taken before they bind it.
        patch.setattr(KernelManager.transport, "default_value", "ipc")
        execute_notebook(
            str(notebook),
            str(result),
            parameters=parameters,
            cwd=str(folder),
            kernel_name="python3",
            progress_bar=False,
            execution_timeout=CELL_TIMEOUT_S,
            extra_arguments=["--IPKernelApp.log_level=ERROR"],
        )
    return result


class Rules:
    """The rules by which nbval compares two outputs of a cell, without a second execution."""

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
        """Remove the parts of a text that differ from run to run."""
        return IPyNbCell.sanitize(self, text)

    def format_output_compare(self, key: str, committed: object, right: object) -> None:
        """Keep a difference for the message."""
        self.comparison_traceback.append(f"{key}: committed {committed!r}\n now {right!r}")


def find_differences(committed: Path, executed: Path) -> list[str]:
    """Return the cells whose outputs differ from the committed outputs, with the differences."""
    before, after = (nbformat.read(path, as_version=4).cells for path in (committed, executed))
    # The cell that papermill injects has no counterpart.
    after = [cell for cell in after if "injected-parameters" not in cell.metadata.get("tags", [])]
    assert [cell.source for cell in before] == [cell.source for cell in after]
    differences = []
    for old, new in zip(before, after, strict=True):
        options = dict(find_metadata_tags(old.metadata))
        if old.cell_type != "code" or options.get("check") is False:
            continue
        rules = Rules()
        outputs = coalesce_streams(new.outputs)
        if not rules.compare_outputs(outputs, coalesce_streams(old.outputs)):
            differences.append(f"{old.id}: " + " ".join(rules.comparison_traceback))
    return differences


def list_outputs(notebook: Path) -> list[dict[str, Any]]:
    """Return each output in the file of a notebook."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [output for cell in cells for output in cell.get("outputs", [])]
