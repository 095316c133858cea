"""Words for input fields in the languages of the lexicons; an objective names fields by them."""

from collections.abc import Iterable, Mapping
from functools import cache

from toolkit.planning.reading.words.tokens import split_tokens

# By the field's own name; what is written in several languages alike stands once.
FIELD_WORDS: Mapping[str, str] = {
    "title": """title, headline, heading, Titel, Überschrift, titre, título, titolo, タイトル, 題,
        題名, 見出し, 标题, 標題, 题目, عنوان, العنوان, عنوانها, عنوانه, بعنوان""",
    "subtitle": """subtitle, subheading, Untertitel, Unterzeile, Unterüberschrift, sous-titre,
        subtítulo, sottotitolo, サブタイトル, 副題, 小見出し, 副标题, 副標題, العنوان الفرعي,
        عنوان فرعي""",
    "body": """body, body text, running text, Fließtext, Haupttext, corps, corps de texte, cuerpo,
        corpo, corpo del testo, corpo do texto, 本文, 正文, 内文, 內文, المتن, متن, نصها""",
    "footer": """footer, foot line, Fußzeile, pied de page, bas de page, pie, pie de página,
        piè di pagina, piede, rodapé, フッター, 脚注, 页脚, 頁尾, 页尾, 頁腳, تذييل, التذييل,
        تذييلها""",
    "kicker": """kicker, overline, Dachzeile, surtitre, antetítulo, occhiello, chapéu, 肩标题,
        眉题""",
    "bullets": """bullets, bullet points, Punkte, Punkten, Stichpunkte, Stichpunkten, puces, points,
        viñetas, puntos, punti, tópicos, pontos, marcadores, 箇条書き, 要点, 要點, نقاط, النقاط""",
    "seed": """seed, Startwert, graine, semilla, seme, semente, シード, シード値, 种子, 種子,
        随机种子, 種子碼, البذرة, بذرة""",
    "steps": """steps, Schritte, Schritten, étapes, pasos, passi, passaggi, passos, ステップ,
        ステップ数, 步数, 步數, 步, الخطوات, عدد الخطوات, خطوات, خطوة""",
    "width": """width, Breite, largeur, ancho, anchura, larghezza, largura, 幅, 横, 横幅, 宽, 寬,
        宽度, 寬度, العرض, عرض""",
    "height": """height, Höhe, hauteur, alto, altura, altezza, 高さ, 縦, 高, 高度, الارتفاع,
        ارتفاع""",
    "negative_prompt": """negative prompt, negativer Prompt, Negativprompt, Negativ-Prompt,
        prompt négatif, prompt negativo, ネガティブプロンプト, 反向提示词, 反向提示詞, 负面提示词,
        負面提示詞, الموجه السلبي, برومبت سلبي""",
    "temperature": """temperature, Temperatur, température, temperatura, 温度, 溫度, الحرارة,
        درجة الحرارة""",
    "max_tokens": """max tokens, tokens, Token, トークン, 令牌, رموز, توكن""",
    "max_sources": """sources, Quellen, fuentes, fonti, fontes, 出典, 情報源, 来源, 來源, مصادر,
        مصدرين""",
    "speed": """speed, Tempo, Geschwindigkeit, Sprechtempo, vitesse, velocidad, velocità,
        velocidade, 速度, 速さ, スピード, 话速, 语速, 語速, السرعة, سرعة, بسرعة""",
    "name": """name, Namen, nom, nombre, nome, 名前, 名字, 名称, 名稱, اسم, باسم""",
}
_CODES = ("en", "zh")  # with spaces between words, and without
# Arabic writes “and”, “with” and “so” as one with the word that follows.
_PROCLITICS = ("", "و", "ب", "وب", "ف")


def collect_field_words(fields: Iterable[str]) -> dict[str, str]:
    """Collect the words for fields that are there: keys of tokens, and the field that is meant."""
    here = set(fields)
    named = {" ".join(_split_key(name.replace("_", " "))): name for name in sorted(here)}
    words = {key: name for key, name in _fold_words().items() if name in here}
    return {**words, **named}


@cache
def _fold_words() -> Mapping[str, str]:
    return {
        " ".join(_split_key(f"{before}{word}")): name
        for name, listed in FIELD_WORDS.items()
        for word in map(str.strip, listed.split(","))
        for before in (_PROCLITICS if "\u0600" <= word[0] <= "\u06ff" else ("",))
    }


def _split_key(word: str) -> list[str]:
    code = _CODES[any(letter >= "\u3000" for letter in word)]
    return [token.key for token in split_tokens(word, code)]
