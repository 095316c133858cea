"""Annotations: the tags and the note that callers give to their runs, workflows and tasks."""

from typing import Annotated

from pydantic import Field

from toolkit.contract.base import Request

MAX_TAGS, MAX_TAG_LENGTH, MAX_NOTE_LENGTH = 32, 64, 2_000
# No commas, which stand between the tags of a query, and no control characters.
# `\s` has \x85 here, and not in JSON Schema.
_TAG_PATTERN = r"^[^\s\x85,\x00-\x1f\x7f]([^,\x00-\x1f\x7f]*[^\s\x85,\x00-\x1f\x7f])?$"
Tag = Annotated[str, Field(min_length=1, max_length=MAX_TAG_LENGTH, pattern=_TAG_PATTERN)]
GivenTags = Annotated[
    list[Tag], Field(max_length=MAX_TAGS, description="tags for filters of lists, without commas")
]
GivenNote = Annotated[str, Field(max_length=MAX_NOTE_LENGTH, description="note in your own words")]


class WorkAnnotate(Request):
    """`POST /v1/{runs,workflows,tasks}/{id}/annotate`: an omitted field stays unchanged.

    Attributes:
        tags: tags that replace the present tags; an empty list removes them.
        note: note that replaces the present note; an empty text removes it.
    """

    tags: GivenTags | None = None
    note: GivenNote | None = None
