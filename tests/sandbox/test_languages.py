"""The simulated language model answers in the requested language, or in that of the prompt."""

import json
import re

import pytest

from toolkit.sandbox.text.chat import ChatTurn, generate_reply

# A mark of each language: letters of its script, or words of no other language here.
MARKS = {
    "en": r"\b(?:the|and|what)\b",
    "de": r"\b(?:und|einen|das|der)\b",
    "fr": r"\b(?:une|il faut|les|mérite)\b",
    "es": r"\b(?:una|con|merece)\b",
    "it": r"\b(?:uno|chi vuole|della|merita)\b",
    "pt": r"\b(?:um|uma|merece um|não)\b",
    "nl": r"\b(?:een|het|wie)\b",
    "ru": r"[а-яё]{3}",
    "ar": r"[\u0621-\u064a]{3}",
    "hi": r"[\u0904-\u0939]",
    "ko": r"[\uac00-\ud7a3]{2}",
    "ja": r"[\u3041-\u3096]{2}",
    "zh": r"[\u4e00-\u9fff]{4}",
}
NAMES = {
    "en": "English", "de": "German", "fr": "French", "es": "Spanish", "it": "Italian",
    "pt": "Portuguese", "nl": "Dutch", "ru": "Russian", "ar": "Arabic", "hi": "Hindi",
    "ko": "Korean", "ja": "Japanese", "zh": "Chinese",
}  # fmt: skip
ASKED_IN = {
    "de": "Schreibe drei Sätze über Gezeitenkraftwerke.",
    "fr": "Écris trois phrases sur les marées.",
    "es": "Escribe tres frases sobre las mareas.",
    "it": "Scrivi tre frasi sulle maree.",
    "pt": "Escreva três frases sobre as marés.",
    "nl": "Schrijf drie zinnen over getijden.",
    "ru": "Напиши три предложения о приливах.",
    "ar": "اكتب ثلاث جمل عن المد والجزر",
    "hi": "ज्वार के बारे में तीन वाक्य लिखो",
    "ko": "조수에 대해 세 문장을 써 주세요.",
    "ja": "潮汐について三つの文を書いてください。",
    "zh": "写三句关于潮汐的话",
}
ENGLISH = re.compile(r"\b(?:the|and|of|is|worth)\b")


def ask_model(prompt: str, system: str = "") -> str:
    """Return the model's answer to a prompt."""
    return generate_reply([ChatTurn("system", system), ChatTurn("user", prompt)]).text


def check_language(text: str, code: str) -> None:
    """Check that a text is in a language, and has no English unless that is the language."""
    assert re.search(MARKS[code], text), text
    if code != "en":
        assert not ENGLISH.search(text), text
    if code == "zh":
        assert not re.search(MARKS["ja"], text)


@pytest.mark.parametrize("code", NAMES)
@pytest.mark.parametrize(
    "wording",
    [
        "Write two sentences about tides in {name}.",
        "Two sentences about tides. Language: {code}",
        "Write in {name} about tides, in two sentences",
    ],
)
def test_answers_in_a_named_language(code: str, wording: str) -> None:
    """Given a language by its name or code, then the answer is in it, in two sentences."""
    text = ask_model(wording.format(name=NAMES[code], code=code))
    check_language(text, code)
    assert len(re.findall(r"[.!?。।؟]", text)) == 2


def test_system_prompt_names_the_language() -> None:
    """Given a language in the system prompt, then it applies unless the user names another."""
    system = "You are a helpful writer. Answer in French."
    check_language(ask_model("Two sentences about tides.", system), "fr")
    check_language(ask_model("Two sentences about tides, auf Deutsch.", system), "de")


@pytest.mark.parametrize("code", ASKED_IN)
def test_answers_in_the_language_of_the_prompt(code: str) -> None:
    """Given a prompt without the name of a language, then the answer is in its language."""
    text = ask_model(ASKED_IN[code])
    check_language(text, code)
    assert len(re.findall(r"[.!?。।؟]", text)) == 3
    assert text == ask_model(ASKED_IN[code])


@pytest.mark.parametrize("code", [code for code in NAMES if code not in ("en", "ja", "zh")])
@pytest.mark.parametrize("number", [7, 23, 60, 155])
def test_writes_the_requested_number_of_words(code: str, number: int) -> None:
    """Given a number of words, then the text has this many within a fifth."""
    text = ask_model(f"Write about tides in {NAMES[code]}, exactly {number} words.")
    if number > 20:
        check_language(text, code)
    assert len(text.split()) == pytest.approx(number, rel=0.2)


@pytest.mark.parametrize("code", ["ja", "zh"])
def test_writes_the_requested_number_of_characters(code: str) -> None:
    """Given a number of characters, then the text has this many within a fifth."""
    prompts = {"ja": "潮汐について60字で書いてください。", "zh": "写60字关于潮汐的短文。"}
    text = ask_model(prompts[code])
    assert sum(char.isalnum() for char in text) == pytest.approx(60, rel=0.2)


@pytest.mark.parametrize(
    "prompt",
    [
        "Write two sentences about bread in French culture.",
        "Summarise the German question in two sentences.",
        "Two sentences about the Spanish flu, please.",
        "Tea",
    ],
)
def test_answers_in_english_about_other_countries(prompt: str) -> None:
    """Given a topic about a country, then the answer is in English."""
    check_language(ask_model(prompt), "en")


@pytest.mark.parametrize("code", ASKED_IN)
def test_fills_a_schema_in_a_language(code: str) -> None:
    """Given a schema, then the object is valid, and its texts are in the requested language."""
    schema = {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "summary": {"type": "string"},
            "language": {"type": "string"},
            "points": {"type": "array", "items": {"type": "string"}, "minItems": 2},
        },
        "required": ["title", "summary", "language", "points"],
    }
    turns = [ChatTurn("user", f"Outline tides in {NAMES[code]}.")]
    outline = json.loads(generate_reply(turns, schema=schema).text)
    check_language(outline["summary"], code)
    for point in outline["points"]:
        assert not ENGLISH.search(point)
    assert outline["language"] == code
