"""The checks of a text, in the order that their issues are told in."""

from collections.abc import Iterator

from toolkit.planning.review.evidence import Inspection
from toolkit.planning.review.issues import ReviewIssue
from toolkit.planning.review.texts.case import TextCase, TextCheck
from toolkit.planning.review.texts.completeness_checks import (
    check_card_body,
    check_emptiness,
    check_ending,
    check_numbering,
    check_sections,
    check_truncation,
)
from toolkit.planning.review.texts.encoding_checks import (
    check_encoding,
    check_hidden,
    check_secrets,
)
from toolkit.planning.review.texts.fact_checks import (
    check_addressee,
    check_facts,
    check_sources,
    check_translation,
)
from toolkit.planning.review.texts.form_checks import (
    check_code,
    check_json,
    check_layout_form,
    check_poem,
)
from toolkit.planning.review.texts.language_checks import check_language
from toolkit.planning.review.texts.length_checks import (
    check_characters,
    check_items,
    check_lines,
    check_paragraphs,
    check_sentences,
    check_speaking_time,
    check_words,
)
from toolkit.planning.review.texts.manner_checks import (
    check_echo,
    check_leak,
    check_refusal,
    check_wrapping,
)
from toolkit.planning.review.texts.repetition_checks import check_repetition
from toolkit.planning.review.texts.residue_checks import check_markup, check_placeholders
from toolkit.planning.review.texts.topic_checks import check_topic

TEXT_CHECKS: tuple[TextCheck, ...] = (
    check_emptiness,
    check_card_body,
    check_truncation,
    check_ending,
    check_numbering,
    check_sections,
    check_language,
    check_words,
    check_characters,
    check_speaking_time,
    check_sentences,
    check_paragraphs,
    check_lines,
    check_items,
    check_json,
    check_code,
    check_poem,
    check_layout_form,
    check_repetition,
    check_refusal,
    check_wrapping,
    check_echo,
    check_leak,
    check_placeholders,
    check_markup,
    check_encoding,
    check_hidden,
    check_secrets,
    check_topic,
    check_facts,
    check_addressee,
    check_translation,
    check_sources,
)


def check_text(look: Inspection) -> Iterator[tuple[str, ReviewIssue]]:
    """Run every check on a text, each issue with the check's name."""
    case = TextCase(look.item.text or "", look)
    for check in TEXT_CHECKS:
        for issue in check(case):
            yield check.__name__.removeprefix("check_"), issue
