"""Hand-written SQL for JSON in a column, in each database's dialect."""

from typing import Final

from toolkit.store.dialects import DatabaseKind

HAS_TEXT: Final = "has_text"  # the name of the function that SQLite is given


def list_given_ids(kind: DatabaseKind) -> str:
    """Build the source `wanted` of ids, which the parameter `:ids` has as a JSON list."""
    if kind == "sqlite":
        return "json_each(:ids) AS wanted"
    return "json_array_elements_text(CAST(:ids AS json)) AS wanted (value)"


class JsonSql:
    """Builders of expressions over JSON, all of which are made of our own names.

    SQLite's are its functions, and PostgreSQL's are operators, after a function of our triggers.
    """

    def __init__(self, kind: DatabaseKind) -> None:
        self._is_sqlite = kind == "sqlite"

    def read(self, doc: str) -> str:
        """Build the argument of the other methods from a column that holds JSON."""
        return doc if self._is_sqlite else f"read_json({doc})"

    def get_text(self, value: str, *path: str) -> str:
        """Build an expression for a member that is a text, or a member's member."""
        if self._is_sqlite:
            return f"json_extract({value}, '$.{'.'.join(path)}')"
        return f"({value} #>> '{{{','.join(path)}}}')"

    def get_number(self, value: str, name: str) -> str:
        """Build an expression for a member that is a number."""
        text = self.get_text(value, name)
        return text if self._is_sqlite else f"CAST({text} AS double precision)"

    def list_items(self, value: str, name: str, alias: str, step: str = "[*]") -> str:
        """Build a source of the items of a member that is a list; each is `alias.value`."""
        if self._is_sqlite:
            return f"json_each({value}, '$.{name}') AS {alias}"
        return f"jsonb_path_query({value}, '$.{name}{step}') AS {alias} (value)"

    def list_values(self, value: str, name: str, alias: str) -> str:
        """Build a source of the values of a member that is an object; each is `alias.value`."""
        return self.list_items(value, name, alias, ".*")

    def get_item(self, alias: str) -> str:
        """Build an expression for an item, or a value, that is a text."""
        return f"{alias}.value" if self._is_sqlite else self.get_text(f"{alias}.value")

    def match_text(self, doc: str, record: str) -> str:
        """Build the condition that a record's input may have the text `:text`, in lower case."""
        if self._is_sqlite:
            return f"{HAS_TEXT}({doc}, '{record}', :text)"
        # In an all-ASCII document, a failed search is final; otherwise the reader checks again.
        condition = f'position(CAST(:text AS text) IN lower({doc} COLLATE "C")) > 0'
        return f"({condition} OR octet_length({doc}) <> length({doc}))"
