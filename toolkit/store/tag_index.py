"""The index of tags: a row for each tag of each piece of work, kept by triggers.

`annotations` is what is written; whoever writes it, the index is right in the same transaction.
"""

_ADD_SQL = (
    "INSERT OR IGNORE INTO tags (account_id, tag, resource_id)"
    " SELECT NEW.account_id, each.value, NEW.id FROM json_each(NEW.tags) AS each;"
)
_REMOVE_SQL = (
    "DELETE FROM tags WHERE account_id = OLD.account_id AND resource_id = OLD.id"
    " AND tag IN (SELECT each.value FROM json_each(OLD.tags) AS each);"
)
TAG_TRIGGERS: tuple[str, ...] = (
    f"CREATE TRIGGER index_tags_insert AFTER INSERT ON annotations BEGIN {_ADD_SQL} END",
    "CREATE TRIGGER index_tags_update AFTER UPDATE OF tags ON annotations"
    f" BEGIN {_REMOVE_SQL} {_ADD_SQL} END",
    f"CREATE TRIGGER index_tags_delete AFTER DELETE ON annotations BEGIN {_REMOVE_SQL} END",
)
