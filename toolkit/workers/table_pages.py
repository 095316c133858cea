"""The rows of a table file as pages of JSON; for a worker process, because a file may be hostile.

pyarrow reads Parquet and Arrow; it is imported here only, because it is an extra.
"""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic_core import from_json, to_json

from toolkit.contract.artifacts import TABLE_MEDIA_TYPE
from toolkit.contract.maps import MAX_PAGE_ROWS, MAX_TABLE_BYTES, MAX_TABLE_ROWS
from toolkit.contract.row_templates import to_cell

_BATCH_ROWS: Final = 1000  # rows of Parquet or Arrow that are converted at once
_DELIMITERS: Final = (",", ";", "\t")
Table = tuple[Sequence[str] | None, Iterator[Mapping[str, object]]]


def read_table_pages(
    data: bytes, media_type: str, needed: Sequence[str]
) -> tuple[list[bytes], list[str]]:
    """Read the needed columns of a table: JSON lines, a JSON list, CSV, Parquet or Arrow.

    Cells of CSV are texts, and an empty cell is null.

    Returns:
        pages, each a JSON list of rows; if the table lacks a needed column, no pages and the names
        of its columns.

    Raises:
        ValueError: the file is no table, or exceeds a limit; the text says which.
        ImportError: the file needs pyarrow, which is not installed.

    >>> read_table_pages(b"text,n\\ntea,1\\nsalt,\\n", "text/plain", ["n"])
    ([b'[{"n":"1"},{"n":null}]'], [])
    """
    names, rows = _open_table(data, media_type, needed)
    docs: list[bytes] = []
    size = 0
    for row in rows:
        columns = row.keys() if names is None else names
        if not set(needed) <= set(columns):
            return [], list(columns)
        docs.append(to_json({name: row[name] for name in needed}))
        size += len(docs[-1])
        if len(docs) > MAX_TABLE_ROWS:
            raise ValueError(f"has more than {MAX_TABLE_ROWS:,} rows: split it")
        if size > MAX_TABLE_BYTES:
            limit = f"{MAX_TABLE_BYTES // 2**20} MiB"
            raise ValueError(f"has more than {limit} in the columns of the templates: split it")
    if not docs:
        raise ValueError("has no rows")
    starts = range(0, len(docs), MAX_PAGE_ROWS)
    return [b"[%s]" % b",".join(docs[at : at + MAX_PAGE_ROWS]) for at in starts], []


def _open_table(data: bytes, media_type: str, needed: Sequence[str]) -> Table:
    """Open a table of any format: return its columns, if all rows have the same, and its rows."""
    if data.startswith(b"PAR1"):
        return _open_arrow("Parquet", lambda: _open_parquet(data, needed))
    if data.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return _open_arrow("Arrow", lambda: _open_ipc(data, needed))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("is no JSON lines, CSV, Parquet or Arrow") from None
    if media_type == TABLE_MEDIA_TYPE:
        return None, _read_list(from_json(text)["data"])
    first = text.lstrip()[:1]
    if first == "[":
        return None, _read_list(from_json(text, allow_inf_nan=False))
    return (None, _read_lines(text)) if first == "{" else _open_csv(text)


def _read_list(rows: list[Any]) -> Iterator[Mapping[str, object]]:
    for n, row in enumerate(rows):
        if not isinstance(row, dict):
            raise ValueError(f"is a list whose item {n} is no object")
        yield row


def _read_lines(text: str) -> Iterator[Mapping[str, object]]:
    for n, line in enumerate(io.StringIO(text, newline="\n"), 1):
        if not line.strip():
            continue
        try:
            row = from_json(line, allow_inf_nan=False)
        except ValueError as error:
            raise ValueError(f"has no JSON on line {n} ({error})") from None
        if not isinstance(row, dict):
            raise ValueError(f"has no object on line {n}")
        yield row


def _open_csv(text: str) -> Table:
    csv.field_size_limit(MAX_TABLE_BYTES)
    head = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    names = next(_iter_csv(reader), [])
    if len(set(names)) < len(names):
        raise ValueError("has two columns of the same name")

    def read() -> Iterator[Mapping[str, object]]:
        for cells in _iter_csv(reader):
            if not cells:
                continue
            if len(cells) != len(names):
                raise ValueError(
                    f"has {len(cells)} cells on line {reader.line_num}, and {len(names)} columns"
                )
            yield {name: cell or None for name, cell in zip(names, cells, strict=True)}

    return names, read()


def _iter_csv(reader: Any) -> Iterator[list[str]]:
    try:
        yield from reader
    except csv.Error as error:
        raise ValueError(f"is no CSV on line {reader.line_num} ({error})") from None


def _open_arrow(name: str, open_file: Callable[[], tuple[Sequence[str], Iterator[Any]]]) -> Table:
    """Open a file by pyarrow, and convert its rows.

    Raises:
        ValueError: pyarrow cannot read it.
        ImportError: pyarrow is not installed.
    """
    import pyarrow as pa

    def read(batches: Iterator[Any]) -> Iterator[Mapping[str, object]]:
        try:
            for batch in batches:
                for row in batch.to_pylist():
                    yield {key: to_cell(value) for key, value in row.items()}
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"cannot be read as {name} ({error})") from None

    try:
        names, batches = open_file()
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"cannot be read as {name} ({error})") from None
    return names, read(batches)


def _open_parquet(data: bytes, needed: Sequence[str]) -> tuple[Sequence[str], Iterator[Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(pa.BufferReader(data))
    names = file.schema_arrow.names
    chosen = [name for name in needed if name in names] or names[:1]
    return names, file.iter_batches(_BATCH_ROWS, columns=chosen, use_threads=False)


def _open_ipc(data: bytes, needed: Sequence[str]) -> tuple[Sequence[str], Iterator[Any]]:
    import pyarrow as pa

    if data.startswith(b"ARROW1"):
        file = pa.ipc.open_file(pa.BufferReader(data))
        batches: Iterator[Any] = (file.get_batch(n) for n in range(file.num_record_batches))
    else:
        file = pa.ipc.open_stream(pa.BufferReader(data))
        batches = iter(file)
    names = file.schema.names
    chosen = [name for name in needed if name in names] or names[:1]
    return names, (
        batch.select(chosen).slice(start, _BATCH_ROWS)
        for batch in batches
        for start in range(0, batch.num_rows, _BATCH_ROWS)
    )
