"""Lexicon of the objective reader: common deliverables, connectors, measures."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CommonDeliverable:
    """Everyday names of a deliverable, for when no capability's keywords claim them.

    Attributes:
        id: what a capability that makes it would be called; reported as missing if there is none.
        media: the media types such a thing has, as a pattern; empty if nothing here can stand in.
        role: the role of the input field that a capability making it is asked through.
        phrases: its names, in the singular.
    """

    id: str
    media: str
    role: str
    phrases: tuple[str, ...]


def _split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def split_phrases(text: str) -> tuple[str, ...]:
    """Split a comma-separated list of phrases."""
    return tuple(phrase.strip() for phrase in text.split(",") if phrase.strip())


COMMON_DELIVERABLES: tuple[CommonDeliverable, ...] = (
    CommonDeliverable(
        "llm.generate",
        "text/*",
        "objective",
        split_phrases(
            "summary, teaser, paragraph, sentence, poem, haiku, limerick, story, joke, headline, "
            "tagline, slogan, blurb, caption, email, letter, article, blog post, essay, tweet, "
            "description, explanation, outline, press release, faq, script, text, copy, "
            "summarise, summarize, explain, describe, recipe, bullet list, introduction, abstract, "
            "overview, digest, briefing, report, note"
        ),
    ),
    CommonDeliverable(
        "speech.generate",
        "audio/*",
        "text",
        split_phrases(
            "audio, audio clip, mp3, narration, narrate, narrated, voice over, voiceover, podcast, "
            "spoken, aloud, read aloud, voice message, audio version"
        ),
    ),
    CommonDeliverable(
        "image.generate",
        "image/*",
        "prompt",
        split_phrases(
            "image, illustration, illustrated, picture, photo, photograph, drawing, draw, "
            "painting, artwork, logo, icon, sketch, render"
        ),
    ),
    CommonDeliverable(
        "composition.layout",
        "image/*",
        "title",
        split_phrases("social card, card, banner, share image, preview card, open graph image"),
    ),
    CommonDeliverable(
        "video.generate", "", "", split_phrases("video, movie, film, animation, video clip, gif")
    ),
    CommonDeliverable(
        "music.generate", "", "", split_phrases("song, music, melody, soundtrack, jingle, tune")
    ),
    CommonDeliverable(
        "slides.generate",
        "",
        "",
        split_phrases("presentation, slide deck, slide, powerpoint, slideshow, keynote"),
    ),
    CommonDeliverable(
        "spreadsheet.generate",
        "",
        "",
        split_phrases("spreadsheet, excel sheet, workbook, csv file"),
    ),
    CommonDeliverable("document.generate", "", "", split_phrases("pdf, word document, ebook")),
    CommonDeliverable(
        "website.generate",
        "",
        "",
        split_phrases("website, web page, webpage, landing page, web app"),
    ),
    CommonDeliverable("mesh.generate", "", "", split_phrases("3d model, mesh")),
    CommonDeliverable(
        "chart.generate",
        "",
        "",
        split_phrases("bar chart, pie chart, line chart, chart, infographic"),
    ),
    CommonDeliverable(
        "speech.transcribe",
        "",
        "",
        split_phrases("transcript, transcription, transcribe, subtitle"),
    ),
    CommonDeliverable("qrcode.generate", "", "", split_phrases("qr code")),
)

# Forms of text that facts cannot replace: they have to be written.
CREATIVE_FORMS = frozenset(
    split_phrases(
        "poem, haiku, limerick, story, joke, slogan, tagline, email, letter, script, recipe, "
        "press release, headline, tweet"
    )
)

VERBS = _split_words(
    """
    write draft draw paint illustrate sketch render narrate read speak say voice record
    research gather investigate find look compose design caption translate generate clone
    rewrite outline sing animate film summarise summarize explain describe transcribe create
    make produce build prepare give get show tell craft turn put announce introduce lay
    """
)
DETERMINERS = _split_words(
    """
    a an the its his her their our my your some another one two three four five this that
    these short brief small simple matching nice quick
    """
)
WITH_WORDS = _split_words(
    """
    with including featuring using containing plus accompanied alongside together
    """
)
AS_WORDS = _split_words("as into to in on onto")
ABOUT_WORDS = _split_words(
    """
    about on regarding concerning explaining covering of showing depicting introducing
    announcing for
    """
)
ALSO_WORDS = _split_words("and then also & plus")
# Words that may follow a deliverable's name; any other word makes the name part of a longer one.
FOLLOWING_WORDS = (
    WITH_WORDS
    | AS_WORDS
    | ABOUT_WORDS
    | ALSO_WORDS
    | _split_words(
        """
    from by at that which who where when how why so please so too titled called named saying
    reading in or but for is are within under who whose aloud out loud up it its them
    suitable aimed based made written
    """
    )
)
# Words that carry no topic when they are left over.
FILLER_WORDS = _split_words(
    """
    a an the please can could would you i we want need like to me us my our for with and of
    on in as some kind help let lets let's also then is are do does what what's whats who
    hello hi hey kindly just new nice short brief quick simple plain make create produce
    build prepare give get write draft generate craft tell it them this that into about put
    turn show one two three compose design which be should together plus say read from
    """
)
QUESTION_WORDS = frozenset({"how", "why", "what", "when", "where", "who", "which"})
LITERAL_CUES = re.compile(
    r"(?:\b(?:say|says|saying|read|reads|reading|text|speak|speaks|narrate|words|titled|title|"
    r"called|named|headline|entitled|aloud)|:)[\s:,]*$",
    re.I,
)
TITLE_CUES = re.compile(r"\b(?:titled|title|called|named|headline|entitled)[\s:,]*$", re.I)
QUOTED_TEXT = re.compile(
    r"\"([^\"]{1,2000})\"|“([^”]{1,2000})”|«([^»]{1,2000})»|「([^」]{1,2000})」"
)
WORD_COUNT = re.compile(
    r"\b(?:(?:of|in|with|within|under|using)\s+)?"
    r"(?:(?:about|around|roughly|approximately|at\s+most|at\s+least|up\s+to|under|exactly|max|"
    r"maximum|no\s+more\s+than)\s+)?(\d{1,5})[\s-]{1,3}words?\b(?:\s+long\b)?",
    re.I,
)
LANGUAGE = re.compile(
    r"\b[Ii]n\s+(Arabic|Bengali|Chinese|Czech|Danish|Dutch|English|Finnish|French|German|Greek|"
    r"Hebrew|Hindi|Hungarian|Indonesian|Italian|Japanese|Korean|Malay|Norwegian|Persian|Polish|"
    r"Portuguese|Romanian|Russian|Spanish|Swahili|Swedish|Tamil|Thai|Turkish|Ukrainian|Urdu|"
    r"Vietnamese|Welsh)\b"
)
ARTIFACT_ID = re.compile(r"\bart_[0-7][0-9a-hjkmnp-tv-z]{25}\b")
