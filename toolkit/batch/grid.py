"""The grid of a batch: rows of parameters, checked before anything runs."""

import ast
import csv
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from toolkit.batch.imports import parse_cells
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.key_shapes import looks_like_key
from toolkit.input_parsing import make_file_error

Parameters = dict[str, Any]
Grid = str | Path | Sequence[Mapping[str, Any]] | Mapping[str, Any]


def read_defaults(notebook: Mapping[str, Any]) -> dict[str, Any]:
    """Read the variables of the cell tagged `parameters`; a value that is no literal is None."""
    defaults: dict[str, Any] = {}
    for tree in parse_cells(notebook, tag="parameters"):
        for node in tree.body:
            targets: Sequence[ast.expr] = ()
            value: ast.expr | None = None
            if isinstance(node, ast.Assign):
                targets, value = node.targets, node.value
            elif isinstance(node, ast.AnnAssign):
                targets, value = [node.target], node.value
            for target in targets:
                if isinstance(target, ast.Name):
                    defaults[target.id] = _evaluate_literal(value)
    return defaults


def load_rows(grid: Grid, defaults: Mapping[str, Any]) -> list[Parameters]:
    """Load the rows of a grid, in order.

    Args:
        grid: a file ending in .csv, .yaml or .yml; a list of rows; or a mapping whose lists are
            combined, each value with each.
        defaults: parameters of the notebook, with their defaults.

    Raises:
        RequestError: if the grid cannot be read, has two equal rows, a value that looks like a
            key, or a parameter that the notebook does not have.
    """
    content = _read_file(Path(grid), defaults) if isinstance(grid, str | Path) else grid
    rows = (
        _combine_lists(content) if isinstance(content, Mapping) else [dict(row) for row in content]
    )
    if not rows:
        raise _build_refusal("The grid has no rows: give at least one.")
    _check_names(rows, defaults)
    seen: dict[str, int] = {}
    for number, row in enumerate(rows, 1):
        for name, value in row.items():
            _check_value(f"rows.{number}.{name}", value)
        text = json.dumps(row, sort_keys=True)
        if text in seen:
            raise _build_refusal(
                f"Rows {seen[text]} and {number} are equal: to run a row twice, add a parameter "
                "that differs, such as a seed."
            )
        seen[text] = number
    return rows


def _read_file(
    path: Path, defaults: Mapping[str, Any]
) -> Sequence[Mapping[str, Any]] | Mapping[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise make_file_error(f"The grid {path}", error) from None
    if path.suffix.lower() == ".csv":
        return _parse_csv(text, defaults)
    if path.suffix.lower() not in (".yaml", ".yml"):
        raise _build_refusal(f"The grid {path.name} has an unknown file type: use .csv or .yaml.")
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError:
        raise _build_refusal(f"The grid {path.name} is not YAML: check its indentation.") from None
    if isinstance(content, Mapping) or (
        isinstance(content, list) and all(isinstance(row, Mapping) for row in content)
    ):
        return content
    raise _build_refusal(f"The grid {path.name} must be a list of rows, or a mapping of lists.")


def _parse_csv(text: str, defaults: Mapping[str, Any]) -> list[Parameters]:
    reader = csv.DictReader(text.splitlines())
    rows = []
    for number, row in enumerate(reader, 1):
        if None in row or None in row.values():
            raise _build_refusal(
                f"Row {number} of the grid does not have a cell for each name of the first row."
            )
        rows.append(
            {
                name.strip(): _parse_cell(cell, defaults.get(name.strip()))
                for name, cell in row.items()
                if cell.strip()
            }
        )
    return rows


def _parse_cell(cell: str, default: Any) -> Any:
    """Parse a cell: text if the notebook's own value is text; else JSON, or else text."""
    if isinstance(default, str):
        return cell
    if cell.strip() in ("True", "False", "None"):
        return ast.literal_eval(cell.strip())
    try:
        return json.loads(cell)
    except ValueError:
        return cell


def _combine_lists(lists: Mapping[str, Any]) -> list[Parameters]:
    choices = [
        [(name, value) for value in (values if isinstance(values, list | tuple) else [values])]
        for name, values in lists.items()
    ]
    return [dict(row) for row in itertools.product(*choices)] if choices else []


def _check_names(rows: Sequence[Parameters], defaults: Mapping[str, Any]) -> None:
    unknown = sorted({str(name) for row in rows for name in row} - set(defaults))
    if unknown:
        has = ", ".join(defaults) or "none: tag a cell `parameters`"
        raise _build_refusal(
            f"The notebook has no parameter {', '.join(f'`{name}`' for name in unknown)}; "
            f"it has {has}."
        )


def _check_value(path: str, value: Any) -> None:
    for leaf in _iter_leaves(value):
        if isinstance(leaf, str) and looks_like_key(leaf) and not _is_in_existing_folder(leaf):
            # The value is not echoed, because it may be a key.
            raise _build_refusal(
                f"The value at `{path}` looks like a key, and notebooks store their parameters: "
                "give the name of an environment variable that holds the key."
            )
        if not isinstance(leaf, bool | int | float | str | None):
            kind = type(leaf).__name__
            raise _build_refusal(f"The value at `{path}` is of type {kind}: write it as text.")


def _is_in_existing_folder(text: str) -> bool:
    """Check whether a text is a long path, not a long key: its folder exists."""
    return "/" in text and Path(text).expanduser().parent.is_dir()


def _iter_leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _iter_leaves(name)
            yield from _iter_leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _iter_leaves(inner)
    else:
        yield value


def _evaluate_literal(node: ast.expr | None) -> Any:
    try:
        return None if node is None else ast.literal_eval(node)
    except ValueError:
        return None


def _build_refusal(message: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, message)
