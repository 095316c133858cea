"""Keep notebooks fit to commit: clean, with outputs that read well without a kernel.

`python scripts/notebooks.py` cleans: fixed ids of cells, cells numbered from the top, no metadata
of papermill, no state of widgets. `--check` only says what is wrong and exits with 1: what is not
clean, and what no machine can put right. `--run [NAME…]` has papermill execute notebooks, those
whose name begins so or all, and keeps the outputs: those of a sandbox without real speech, which
the extra `[speech]` brings and the README's command does not.
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
# What must stand in no output: paths of a machine, objects that show nothing, keys, faults.
UNFIT = re.compile(
    r"(?:/(?:home|root|tmp|Users)/|[A-Z]:\\Users|site-packages)[^\s\"']*"
    r"|object at 0x[0-9a-f]+"
    r"|sk_live_\S{4,}|\bsk-(?:ant-|proj-)\S+"
    r"|Traceback \(most recent call last\)"
)
WIDGET = "application/vnd.jupyter.widget-view+json"
MOST_BYTES = 1_000_000


def clean_notebook(notebook: dict) -> dict:
    """The notebook as it is committed."""
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
            # A widget's model ends with its kernel; what it shows without one is kept beside it.
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
    """What keeps a clean notebook from being committed."""
    cells = notebook["cells"]
    if not "".join(cells[0]["source"]).startswith("# "):
        yield "begins with no title"
    given = [c for c in cells if "parameters" in _tags(c)]
    if len(given) != 1:
        yield "has not one cell tagged `parameters`"
    for line in (line for cell in given for line in "".join(cell["source"]).splitlines()):
        if not PARAMETER.fullmatch(line):
            yield f"has a parameter that is not `name: type = value  # help`: {line}"
    if not any("image" in kind for kind in _kinds(cells)):
        yield "keeps no picture"
    for cell in cells:
        if cell["cell_type"] == "code" and cell["execution_count"] is None:
            yield f"was not run: {cell['id']}"
        outputs = cell.get("outputs", [])
        found = UNFIT.search(json.dumps([*outputs, cell["source"]], ensure_ascii=False))
        if found:
            yield f"shows what it should not: {cell['id']}, {found[0][:24]}…"
        for output in outputs:
            if output["output_type"] == "error" or WIDGET in output.get("data", {}):
                yield f"has an output that is nothing without a kernel: {cell['id']}"
    if len(format_notebook(notebook)) > MOST_BYTES:
        yield f"is larger than {MOST_BYTES} bytes"


def format_notebook(notebook: dict) -> str:
    """The text of a notebook's file."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def run(path: Path) -> None:
    """Have papermill execute a notebook in an empty folder, and keep what it shows."""
    from papermill.execute import execute_notebook

    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / path.name
        execute_notebook(
            str(path),
            str(made),
            cwd=folder,
            kernel_name="python3",
            progress_bar=False,
            execution_timeout=CELL_TIMEOUT_S,
        )
        notebook = json.loads(made.read_text(encoding="utf-8"))
    path.write_text(format_notebook(clean_notebook(notebook)), encoding="utf-8")


def _merge_streams(outputs: list[dict]) -> list[dict]:
    """Outputs with the pieces of one stream put together, however they arrived."""
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
            sys.exit("Uninstall espeakng_loader: with it, the sandbox speaks in another way.")
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
