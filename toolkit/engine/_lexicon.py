"""Lexicon of the objective reader: common deliverables, connectors, measures."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Common:
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


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def phrases(text: str) -> tuple[str, ...]:
    """Split a comma-separated list of phrases."""
    return tuple(phrase.strip() for phrase in text.split(",") if phrase.strip())


COMMON: tuple[Common, ...] = (
    Common(
        "llm.generate",
        "text/*",
        "objective",
        phrases(
            "summary, teaser, paragraph, sentence, poem, haiku, limerick, story, joke, headline, "
            "tagline, slogan, blurb, caption, email, letter, article, blog post, essay, tweet, "
            "description, explanation, outline, press release, faq, script, text, copy, "
            "summarise, summarize, explain, describe, recipe, bullet list, introduction, abstract, "
            "overview, digest, briefing, report, note"
        ),
    ),
    Common(
        "speech.generate",
        "audio/*",
        "text",
        phrases(
            "audio, audio clip, mp3, narration, narrate, narrated, voice over, voiceover, podcast, "
            "spoken, aloud, read aloud, voice message, audio version"
        ),
    ),
    Common(
        "image.generate",
        "image/*",
        "prompt",
        phrases(
            "image, illustration, illustrated, picture, photo, photograph, drawing, draw, "
            "painting, artwork, logo, icon, sketch, render"
        ),
    ),
    Common(
        "composition.layout",
        "image/*",
        "title",
        phrases("social card, card, banner, share image, preview card, open graph image"),
    ),
    Common("video.generate", "", "", phrases("video, movie, film, animation, video clip, gif")),
    Common("music.generate", "", "", phrases("song, music, melody, soundtrack, jingle, tune")),
    Common(
        "slides.generate",
        "",
        "",
        phrases("presentation, slide deck, slide, powerpoint, slideshow, keynote"),
    ),
    Common("spreadsheet.generate", "", "", phrases("spreadsheet, excel sheet, workbook, csv file")),
    Common("document.generate", "", "", phrases("pdf, word document, ebook")),
    Common(
        "website.generate", "", "", phrases("website, web page, webpage, landing page, web app")
    ),
    Common("mesh.generate", "", "", phrases("3d model, mesh")),
    Common(
        "chart.generate", "", "", phrases("bar chart, pie chart, line chart, chart, infographic")
    ),
    Common("speech.transcribe", "", "", phrases("transcript, transcription, transcribe, subtitle")),
    Common("qrcode.generate", "", "", phrases("qr code")),
)

# Forms of text that facts cannot replace: they have to be written.
CREATIVE = frozenset(
    phrases(
        "poem, haiku, limerick, story, joke, slogan, tagline, email, letter, script, recipe, "
        "press release, headline, tweet"
    )
)

VERBS = _set(
    """
    write draft draw paint illustrate sketch render narrate read speak say voice record
    research gather investigate find look compose design caption translate generate clone
    rewrite outline sing animate film summarise summarize explain describe transcribe create
    make produce build prepare give get show tell craft turn put announce introduce lay
    """
)
DETERMINERS = _set(
    """
    a an the its his her their our my your some another one two three four five this that
    these short brief small simple matching nice quick
    """
)
WITH = _set(
    """
    with including featuring using containing plus accompanied alongside together
    """
)
AS = _set("as into to in on onto")
ABOUT = _set(
    """
    about on regarding concerning explaining covering of showing depicting introducing
    announcing for
    """
)
ALSO = _set("and then also & plus")
# Words that may follow a deliverable's name; any other word makes the name part of a longer one.
AFTER = (
    WITH
    | AS
    | ABOUT
    | ALSO
    | _set(
        """
    from by at that which who where when how why so please so too titled called named saying
    reading in or but for is are within under who whose aloud out loud up it its them
    suitable aimed based made written
    """
    )
)
# Words that carry no topic when they are left over.
FILLER = _set(
    """
    a an the please can could would you i we want need like to me us my our for with and of
    on in as some kind help let lets let's also then is are do does what what's whats who
    hello hi hey kindly just new nice short brief quick simple plain make create produce
    build prepare give get write draft generate craft tell it them this that into about put
    turn show one two three compose design which be should together plus say read from
    """
)
QUESTIONS = frozenset({"how", "why", "what", "when", "where", "who", "which"})
LITERAL_CUES = re.compile(
    r"(?:\b(?:say|says|saying|read|reads|reading|text|speak|speaks|narrate|words|titled|title|"
    r"called|named|headline|entitled|aloud)|:)[\s:,]*$",
    re.I,
)
TITLE_CUES = re.compile(r"\b(?:titled|title|called|named|headline|entitled)[\s:,]*$", re.I)
QUOTED = re.compile(r"\"([^\"]{1,2000})\"|“([^”]{1,2000})”|«([^»]{1,2000})»|「([^」]{1,2000})」")
MEASURE = re.compile(
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
