"""The thresholds of the reviewer's checks, which an operator can set."""

from pydantic import BaseModel, ConfigDict, Field


class ReviewThresholds(BaseModel):
    """The thresholds of the reviewer's checks.

    Attributes:
        pass_score: the least score that passes where nothing blocks.
        topic_share: the least share of a topic's words that a text has.
        judge_margin: so near to `pass_score`, one answer of the judge does not decide.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    pass_score: float = Field(default=0.6, ge=0, le=1)
    topic_share: float = Field(default=0.34, ge=0, le=1)
    # One major finding alone, or two minor ones.
    judge_margin: float = Field(default=0.15, ge=0, le=1)


DEFAULT_THRESHOLDS = ReviewThresholds()
