"""What hand-written SQL says of JSON in a column, in each database's words."""

from typing import Final, Protocol

from toolkit.store.dialects import DatabaseKind

HAS_TEXT: Final = "has_text"  # the name of the function that SQLite is given


class JsonSql(Protocol):
    """Builders of expressions over JSON, all of which are made of our own names."""

    def read(self, doc: str) -> str:
        """Build what the other methods take, of a column that holds JSON."""
        ...

    def get_text(self, value: str, *path: str) -> str:
        """Build an expression for a member that is a text, or a member's member."""
        ...

    def get_number(self, value: str, name: str) -> str:
        """Build an expression for a member that is a number."""
        ...

    def list_items(self, value: str, name: str, alias: str) -> str:
        """Build a source of the items of a member that is a list; each is `alias.value`."""
        ...

    def list_values(self, value: str, name: str, alias: str) -> str:
        """Build a source of the values of a member that is an object; each is `alias.value`."""
        ...

    def get_item(self, alias: str) -> str:
        """Build an expression for an item, or a value, that is a text."""
        ...

    def match_text(self, doc: str, record: str) -> str:
        """Build the condition that a record's input may have the text `:text`, in lower case."""
        ...


class _SqliteJson:
    """SQLite's functions, and the one that it is given."""

    def read(self, doc: str) -> str:
        return doc

    def get_text(self, value: str, *path: str) -> str:
        return f"json_extract({value}, '$.{'.'.join(path)}')"

    def get_number(self, value: str, name: str) -> str:
        return self.get_text(value, name)

    def list_items(self, value: str, name: str, alias: str) -> str:
        return f"json_each({value}, '$.{name}') AS {alias}"

    def list_values(self, value: str, name: str, alias: str) -> str:
        return self.list_items(value, name, alias)

    def get_item(self, alias: str) -> str:
        return f"{alias}.value"

    def match_text(self, doc: str, record: str) -> str:
        return f"{HAS_TEXT}({doc}, '{record}', :text)"


class _PostgresJson:
    """PostgreSQL's operators, after the function of `postgres.triggers`."""

    def read(self, doc: str) -> str:
        return f"read_json({doc})"

    def get_text(self, value: str, *path: str) -> str:
        return f"({value} #>> '{{{','.join(path)}}}')"

    def get_number(self, value: str, name: str) -> str:
        return f"CAST({self.get_text(value, name)} AS double precision)"

    def list_items(self, value: str, name: str, alias: str) -> str:
        return f"jsonb_path_query({value}, '$.{name}[*]') AS {alias} (value)"

    def list_values(self, value: str, name: str, alias: str) -> str:
        return f"jsonb_path_query({value}, '$.{name}.*') AS {alias} (value)"

    def get_item(self, alias: str) -> str:
        return self.get_text(f"{alias}.value")

    def match_text(self, doc: str, record: str) -> str:  # noqa: ARG002 - the rows themselves tell
        # Where all is ASCII, a document without the text has it nowhere; else who reads it looks.
        found = f'position(CAST(:text AS text) IN lower({doc} COLLATE "C")) > 0'
        return f"({found} OR octet_length({doc}) <> length({doc}))"


JSON_SQL: Final[dict[DatabaseKind, JsonSql]] = {
    "sqlite": _SqliteJson(),
    "postgresql": _PostgresJson(),
}
