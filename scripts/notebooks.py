"""Check that notebooks are clean, and that their outputs are readable without a kernel.

`python scripts/notebooks.py` cleans notebooks: fixed ids of cells, cells numbered from the top, no
metadata of papermill, no state of widgets. `--check` only reports faults and exits with 1:
notebooks that are not clean, and faults that need a person. `--run [NAME…]` executes with papermill
all notebooks, or those with a name prefix, and stores the outputs: outputs of a sandbox without
real speech, because the extra `[speech]` is not part of the README's command.
"""

import importlib.util
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
CELL_TIMEOUT_S = 300
PARAMETER = re.compile(r'[a-z_]+: (bool|float|int|str) = (True|False|"[^"]*"|[\d.]+)  # \S.*')
# Texts that no output may contain: paths of a machine, bare object reprs, keys, tracebacks.
UNFIT = re.compile(
    r"(?:/(?:home|root|tmp|Users)/|[A-Z]:\\Users|site-packages)[^\s\"']*"
    r"|object at 0x[0-9a-f]+"
    r"|sk_live_\S{4,}|\bsk-(?:ant-|proj-)\S+"
    r"|Traceback \(most recent call last\)"
)
WIDGET = "application/vnd.jupyter.widget-view+json"
MOST_BYTES = 1_000_000


def clean_notebook(notebook: dict) -> dict:
    """Return the notebook as it is committed."""
    cells = [c for c in notebook["cells"] if "injected-parameters" not in _tags(c)]
    number = 0
    for i, cell in enumerate(cells):
        cell["id"] = f"cell-{i:02d}"
        cell["metadata"] = {"tags": _tags(cell)} if _tags(cell) else {}
        if cell.get("execution_count") is not None:
            number += 1
            cell["execution_count"] = number
        if "outputs" in cell:
            cell["outputs"] = _merge_streams(cell["outputs"])
        for output in cell.get("outputs", []):
            # A widget's model ends with its kernel; the output next to it is shown without a
            # kernel.
            if len(output.get("data", {})) > 1:
                output["data"].pop(WIDGET, None)
            if "metadata" in output:
                output["metadata"] = {}
            if "execution_count" in output:
                output["execution_count"] = number
    notebook["cells"] = cells
    notebook["metadata"] = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    return notebook


def find_faults(notebook: dict) -> Iterator[str]:
    """Yield the reasons why a clean notebook cannot be committed."""
    cells = notebook["cells"]
    if not "".join(cells[0]["source"]).startswith("# "):
        yield "does not begin with a title"
    parameter_cells = [c for c in cells if "parameters" in _tags(c)]
    if len(parameter_cells) != 1:
        yield "must have exactly one cell tagged `parameters`"
    for line in (line for cell in parameter_cells for line in "".join(cell["source"]).splitlines()):
        if not PARAMETER.fullmatch(line):
            yield f"has a parameter that is not of the form `name: type = value  # help`: {line}"
    if not any("image" in kind for kind in _kinds(cells)):
        yield "has no output with a picture"
    for cell in cells:
        if cell["cell_type"] == "code" and cell["execution_count"] is None:
            yield f"was not run: {cell['id']}"
        outputs = cell.get("outputs", [])
        match = UNFIT.search(json.dumps([*outputs, cell["source"]], ensure_ascii=False))
        if match:
            yield f"shows a path, a key, an object or a traceback: {cell['id']}, {match[0][:24]}…"
        for output in outputs:
            if output["output_type"] == "error" or WIDGET in output.get("data", {}):
                yield f"has an error, or an output that needs a kernel: {cell['id']}"
    if len(format_notebook(notebook)) > MOST_BYTES:
        yield f"is larger than {MOST_BYTES} bytes"


def format_notebook(notebook: dict) -> str:
    """Return the text of a notebook's file."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def run(path: Path) -> None:
    """Execute a notebook with papermill in an empty folder, and store its outputs."""
    from papermill.execute import execute_notebook

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / path.name
        execute_notebook(
            str(path),
            str(target),
            cwd=folder,
            kernel_name="python3",
            progress_bar=False,
            execution_timeout=CELL_TIMEOUT_S,
        )
        notebook = json.loads(target.read_text(encoding="utf-8"))
    path.write_text(format_notebook(clean_notebook(notebook)), encoding="utf-8")


def _merge_streams(outputs: list[dict]) -> list[dict]:
    """Merge the pieces of each output stream."""
    merged: list[dict] = []
    for output in outputs:
        before = merged[-1] if merged else {}
        if output["output_type"] == "stream" and before.get("name") == output["name"]:
            text = "".join([*before["text"], *output["text"]])
            before["text"] = text.splitlines(keepends=True)
        else:
            merged.append(output)
    return merged


def _tags(cell: dict) -> list[str]:
    return cell["metadata"].get("tags") or []


def _kinds(cells: list[dict]) -> set[str]:
    return {
        kind for c in cells for output in c.get("outputs", []) for kind in output.get("data", ())
    }


def main(arguments: list[str]) -> int:
    """Clean, check or run notebooks."""
    if arguments[:1] == ["--run"]:
        if importlib.util.find_spec("espeakng_loader"):
            sys.exit("Uninstall espeakng_loader, because with it the sandbox's speech differs.")
        for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb")):
            if path.name.startswith(tuple(arguments[1:] or [""])):
                run(path)
    wrong = []
    for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb")):
        text = path.read_text(encoding="utf-8")
        notebook = clean_notebook(json.loads(text))
        if format_notebook(notebook) != text:
            wrong.append(f"{path.name} is not clean: run scripts/fix")
            if "--check" not in arguments:
                path.write_text(format_notebook(notebook), encoding="utf-8")
        wrong += [f"{path.name} {fault}" for fault in find_faults(notebook)]
    if "--check" in arguments:
        print("\n".join(wrong), end="\n" if wrong else "")
        return 1 if wrong else 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
