"""Thresholds of the reviewer's checks, which an operator can set."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Share = Annotated[float, Field(ge=0, le=1)]


class SoundThresholds(BaseModel):
    """Thresholds of the checks of sounds; loudness is in decibels relative to full scale.

    Attributes:
        min_loudness_db: minimum loudness of audible sound.
        min_heard_s: minimum audible time, in seconds.
        heard_share: minimum audible time between pauses, as a share of the shortest time that the
            text takes.
        min_judged_s: minimum audible time for all other checks, in seconds.
        min_shape_change_db: minimum change of the spectrum; noise has 1.6, speech 2 to 8.
        max_steady_share: maximum share of the sound that does not change within a tenth of a
            second; speech has 0.2.
        max_tonal_share: maximum share of the sound that is a pure tone; speech in a hum has 0.6.
        min_level_change_db: minimum change of loudness; a tune has 1, speech 2.5 to 10.
        clipped_peak: peak from which clipping is checked.
        max_clipped_share: maximum share of samples at the peak; speech has 0.02.
        min_repeated_s: minimum audible time for the check of repetition, in seconds.
        cut_end_share: minimum duration of a sound that ends at full loudness, as a share of the
            usual duration of its text.
        max_word_errors: maximum word error rate of a transcript, if a transcriber is connected.
            Numbers and names alone may cost 0.2.
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
    max_word_errors: float = Field(default=0.5, ge=0)


class PictureThresholds(BaseModel):
    """Thresholds of the checks of pictures; levels of brightness are from 0 to 255.

    Attributes:
        min_visible_share: minimum share of pixels that are not transparent.
        min_contrast: minimum difference between the lightest and the darkest part, in levels of
            brightness from 0 to 255.
        max_noise: maximum unlikeness of neighbouring pixels, from 0 to 1.
        max_dead_share: maximum share of the picture that has one colour and begins at an edge.
        min_block: minimum side of a block of one colour, in pixels.
        min_finest_detail: minimum change of the sharpest parts when the picture is scaled to half
            its size and back, in levels.
        min_turns: minimum number of changes from light to dark for the check of detail.
        min_detailed_contrast: minimum contrast for the check of detail, in levels.
        max_same_bits: pictures are equal if at most this number of the 192 bits of their
            fingerprints differ.
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
    """Thresholds of the checks of cards.

    Attributes:
        max_lost_share: maximum share of letters without a glyph.
        min_text_share: minimum share of the words of each input text on the card.
        min_cut_share: minimum share of these words if the layout reports that it cut the text.
        max_foreign_share: maximum share of words of a text that are in no input.
        min_source_share: minimum share of a body's words that are in its sources.
        max_outside: maximum distance of a text outside the card, as a share of the card's shorter
            side.
        min_type: minimum size of type, as a share of the card's shorter side.
        legible_px: minimum size of type on a large card, in pixels.
        max_overlap: maximum share of a text that overlaps another text.
        min_contrast: minimum contrast ratio of a text and its background.
        min_picture_share: minimum share of a picture's colours on the card.
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
    """Thresholds of the checks of texts; shares are from 0 to 1.

    Attributes:
        foreign_share: maximum share of sentences in other languages.
        repeated_share: maximum share of repeated sentences.
        echo_share: a text that contains at least this share of its brief is an echo.
        hidden_share: maximum share of invisible characters.
        short_characters: a shorter text fails at one garbled place, a longer text at two.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    foreign_share: Share = 0.3
    repeated_share: Share = 0.3
    echo_share: Share = 0.6
    hidden_share: Share = 0.02
    short_characters: int = Field(default=400, ge=0)


class ResearchThresholds(BaseModel):
    """Thresholds of the checks of research.

    Attributes:
        min_letters: minimum number of letters in the facts.
        min_filled_share: minimum share of parts that are not placeholders.
        min_language_letters: minimum number of letters for the check of language.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    min_letters: int = Field(default=40, ge=0)
    min_filled_share: Share = 0.5
    min_language_letters: int = Field(default=80, ge=0)


class ReviewThresholds(BaseModel):
    """Thresholds of the checks that a reviewer makes of results.

    Attributes:
        pass_score: minimum score that passes if nothing blocks.
        text: thresholds of the checks of texts.
        sound: thresholds of the checks of sounds.
        picture: thresholds of the checks of pictures.
        card: thresholds of the checks of cards.
        research: thresholds of the checks of research.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    pass_score: Share = 0.6
    text: TextThresholds = TextThresholds()
    sound: SoundThresholds = SoundThresholds()
    picture: PictureThresholds = PictureThresholds()
    card: CardThresholds = CardThresholds()
    research: ResearchThresholds = ResearchThresholds()


DEFAULT_THRESHOLDS = ReviewThresholds()
