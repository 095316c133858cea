"""The thresholds of the reviewer's checks, which an operator can set."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Share = Annotated[float, Field(ge=0, le=1)]


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
        min_repeated_s: the least that has to be heard for repeats to be told.
        cut_end_share: the share of the usual time that what ends at full loudness has to take.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    min_loudness_db: float = Field(default=-60.0, le=0)
    min_heard_s: float = Field(default=0.08, ge=0)
    heard_share: Share = 0.4
    min_judged_s: float = Field(default=0.5, ge=0)
    min_shape_change_db: float = Field(default=1.75, ge=0)
    max_steady_share: Share = 0.5
    max_tonal_share: Share = 0.8
    min_level_change_db: float = Field(default=1.7, ge=0)
    clipped_peak: Share = 0.9
    max_clipped_share: Share = 0.05
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
        max_same_bits: by how many of 192 bits the fingerprints of equal pictures differ at most.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    min_visible_share: Share = 0.005
    min_contrast: float = Field(default=7.0, ge=0)
    max_noise: Share = 0.7
    max_dead_share: Share = 0.35
    min_block: int = Field(default=4, ge=2)
    min_finest_detail: float = Field(default=2.5, ge=0)
    min_turns: float = Field(default=1.8, ge=0)
    min_detailed_contrast: float = Field(default=30.0, ge=0)
    max_same_bits: int = Field(default=4, ge=0)


class CardThresholds(BaseModel):
    """The thresholds of the checks of cards.

    Attributes:
        max_lost_share: the most letters that may have no glyph, of 1.
        min_text_share: the least share of the words of each text that was given.
        min_cut_share: the same where the layout says that it cut some.
        max_foreign_share: the most words of a text that nobody gave, of 1.
        min_source_share: the least share of a body's words that are from what it was made from.
        max_outside: how far a text may stand out of a card, of its shorter side.
        min_type: the least size of type, of the card's shorter side.
        legible_px: the least size of type on a large card, in pixels.
        max_overlap: the most of a text that may lie upon another, of 1.
        min_contrast: the least ratio of a text to what is behind it.
        min_picture_share: the least share of a picture's colours that are on a card.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_lost_share: Share = 0.02
    min_text_share: Share = 0.75
    min_cut_share: Share = 0.25
    max_foreign_share: Share = 0.5
    min_source_share: Share = 0.4
    max_outside: float = Field(default=0.005, ge=0)
    min_type: float = Field(default=0.012, ge=0)
    legible_px: float = Field(default=11, ge=0)
    max_overlap: Share = 0.12
    min_contrast: float = Field(default=1.8, ge=1)
    min_picture_share: Share = 0.45


class TextThresholds(BaseModel):
    """The thresholds of the checks of texts; shares are from 0 to 1.

    Attributes:
        foreign_share: the most of a text that may be sentences in other languages.
        repeated_share: the most of a text that may have stood in it before.
        echo_share: the share of a brief that a text repeats to be an echo of it.
        hidden_share: the most of a text that may be signs that are not seen.
        short_characters: in texts shorter than that, one garbled letter is too many.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    foreign_share: Share = 0.3
    repeated_share: Share = 0.3
    echo_share: Share = 0.6
    hidden_share: Share = 0.02
    short_characters: int = Field(default=400, ge=0)


class ResearchThresholds(BaseModel):
    """The thresholds of the checks of research.

    Attributes:
        min_letters: the least letters of facts.
        min_filled_share: the least share of parts that are no placeholders.
        min_language_letters: the letters from which on the language is told.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    min_letters: int = Field(default=40, ge=0)
    min_filled_share: Share = 0.5
    min_language_letters: int = Field(default=80, ge=0)


class ReviewThresholds(BaseModel):
    """The thresholds of the reviewer's checks.

    Attributes:
        pass_score: the least score that passes where nothing blocks.
        text: of the checks of texts.
        sound: of the checks of sounds.
        picture: of the checks of pictures.
        card: of the checks of cards.
        research: of the checks of research.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    pass_score: Share = 0.6
    text: TextThresholds = TextThresholds()
    sound: SoundThresholds = SoundThresholds()
    picture: PictureThresholds = PictureThresholds()
    card: CardThresholds = CardThresholds()
    research: ResearchThresholds = ResearchThresholds()


DEFAULT_THRESHOLDS = ReviewThresholds()
