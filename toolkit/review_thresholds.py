"""The thresholds of the reviewer's checks, which an operator can set."""

from pydantic import BaseModel, ConfigDict, Field


class SoundThresholds(BaseModel):
    """The thresholds of the checks of sounds; loudness is in decibels of full scale.

    Attributes:
        min_loudness_db: the least loudness that counts as heard.
        min_heard_s: the least that has to be heard.
        heard_share: the share of the least time for a text that has to be heard, between pauses.
        min_judged_s: the least that has to be heard for the rest to be judged.
        min_shape_change_db: the least that a spectrum changes; noise has 1.6, speech 2 to 8.
        max_steady_share: the most that may be the same a tenth of a second later; speech has 0.2.
        max_tonal_share: the most that may be one pure tone; speech in a hum has 0.6.
        min_level_change_db: the least that loudness changes; a tune has 1, speech 2.5 to 10.
        clipped_peak: the highest value from which on clipping is looked for.
        max_clipped_share: the most that may be as high as that; speech has 0.02.
        max_channel_gap_db: how much quieter one channel may be.
        min_repeated_s: the least that has to be heard for repeats to be told.
        cut_end_share: the share of the usual time that what ends at full loudness has to take.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    min_loudness_db: float = Field(default=-60.0, le=0)
    min_heard_s: float = Field(default=0.08, ge=0)
    heard_share: float = Field(default=0.4, ge=0, le=1)
    min_judged_s: float = Field(default=0.5, ge=0)
    min_shape_change_db: float = Field(default=1.75, ge=0)
    max_steady_share: float = Field(default=0.5, ge=0, le=1)
    max_tonal_share: float = Field(default=0.8, ge=0, le=1)
    min_level_change_db: float = Field(default=1.7, ge=0)
    clipped_peak: float = Field(default=0.9, ge=0, le=1)
    max_clipped_share: float = Field(default=0.05, ge=0, le=1)
    max_channel_gap_db: float = Field(default=35.0, ge=0)
    min_repeated_s: float = Field(default=1.5, ge=0)
    cut_end_share: float = Field(default=0.7, ge=0)


class PictureThresholds(BaseModel):
    """The thresholds of the checks of pictures; levels are of 255.

    Attributes:
        min_visible_share: the least share of pixels that are not transparent.
        min_contrast: the least difference between the lightest and the darkest part, in levels.
        max_noise: how little pixels may be like those beside them, of 1.
        max_dead_share: the most that may be one colour from an edge on, cut off from the rest.
        min_block: the side from which on blocks of one colour are told, in pixels.
        min_finest_detail: the least that the sharpest places lose when it is made half as large.
        min_turns: how often it has to turn from light to dark for detail to be missed.
        min_detailed_contrast: the contrast from which on detail is missed.
        min_checkers: how many squares of two colours are no chess board any more.
        max_same_bits: by how many of 192 bits the fingerprints of equal pictures differ at most.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    min_visible_share: float = Field(default=0.005, ge=0, le=1)
    min_contrast: float = Field(default=7.0, ge=0)
    max_noise: float = Field(default=0.7, ge=0, le=1)
    max_dead_share: float = Field(default=0.28, ge=0, le=1)
    min_block: int = Field(default=4, ge=2)
    min_finest_detail: float = Field(default=2.5, ge=0)
    min_turns: float = Field(default=1.8, ge=0)
    min_detailed_contrast: float = Field(default=30.0, ge=0)
    min_checkers: int = Field(default=100, ge=1)
    max_same_bits: int = Field(default=4, ge=0)


class CardThresholds(BaseModel):
    """The thresholds of the checks of cards.

    Attributes:
        max_lost_share: the most letters that may have no glyph, of 1.
        min_text_share: the least share of the words of each text that was given.
        min_cut_share: the same where the layout says that it cut some.
        min_source_share: the least share of a body's words that are from what it was made from.
        max_outside: how far a text may stand out of a card, of its shorter side.
        min_type: the least size of type, of the card's shorter side.
        max_overlap: the most of a text that may lie upon another, of 1.
        min_contrast: the least ratio of a text to what is behind it.
        min_picture_share: the least share of a picture's colours that are on a card.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_lost_share: float = Field(default=0.02, ge=0, le=1)
    min_text_share: float = Field(default=0.75, ge=0, le=1)
    min_cut_share: float = Field(default=0.1, ge=0, le=1)
    min_source_share: float = Field(default=0.4, ge=0, le=1)
    max_outside: float = Field(default=0.005, ge=0)
    min_type: float = Field(default=0.012, ge=0)
    max_overlap: float = Field(default=0.25, ge=0, le=1)
    min_contrast: float = Field(default=1.25, ge=1)
    min_picture_share: float = Field(default=0.45, ge=0, le=1)


class ReviewThresholds(BaseModel):
    """The thresholds of the reviewer's checks.

    Attributes:
        pass_score: the least score that passes where nothing blocks.
        topic_share: the least share of a topic's words that a text has.
        judge_margin: so near to `pass_score`, one answer of the judge does not decide.
        sound: of the checks of sounds.
        picture: of the checks of pictures.
        card: of the checks of cards.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    pass_score: float = Field(default=0.6, ge=0, le=1)
    topic_share: float = Field(default=0.34, ge=0, le=1)
    # One major finding alone, or two minor ones.
    judge_margin: float = Field(default=0.15, ge=0, le=1)
    sound: SoundThresholds = SoundThresholds()
    picture: PictureThresholds = PictureThresholds()
    card: CardThresholds = CardThresholds()


DEFAULT_THRESHOLDS = ReviewThresholds()
