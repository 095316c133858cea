"""The thresholds of the reviewer's checks, which an operator can set."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Share = Annotated[float, Field(ge=0, le=1)]


class ReviewThresholds(BaseModel):
    """The thresholds of the reviewer's checks; shares are from 0 to 1.

    Attributes:
        pass_score: the least score that passes where nothing blocks.
        script_share: the least share of letters in the script of the language that is asked for.
        foreign_share: the most of a text that may be sentences in other languages.
        length_slack: how far a number of words may be from what was asked for.
        limit_slack: the same for a limit, such as "at most 100 words".
        parts_slack: the same for numbers of sentences and paragraphs.
        one_line_words: the most words of a slogan or a headline.
        repeated_share: the most of a text that may have stood in it before.
        repeated_share_of_verse: the same for what has a refrain.
        packed_share: the least that a text may be packed to; less says nothing new.
        echo_share: the share of a brief that a text repeats to be an echo of it.
        heading_characters: texts shorter than that need no headings.
        hidden_share: the most of a text that may be signs that are not seen.
        material_share: the least share of a text's words that stand in its material.
        topic_terms: words of a text, that has to name its topic by one of them.
        min_facts: the names and numbers of a brief of which a text has one at least.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    pass_score: Share = 0.6
    script_share: Share = 0.3
    foreign_share: Share = 0.3
    length_slack: Share = 0.4
    limit_slack: Share = 0.1
    parts_slack: Share = 0.34
    one_line_words: int = Field(default=30, ge=1)
    repeated_share: Share = 0.25
    repeated_share_of_verse: Share = 0.55
    packed_share: Share = 0.15
    echo_share: Share = 0.75
    heading_characters: int = Field(default=600, ge=0)
    hidden_share: Share = 0.02
    material_share: Share = 0.15
    topic_terms: int = Field(default=30, ge=1)
    min_facts: int = Field(default=3, ge=1)


DEFAULT_THRESHOLDS = ReviewThresholds()
