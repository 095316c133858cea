"""Texts in many scripts and of many kinds, for properties that must hold for every text."""

import base64
import hashlib
import json

# The same sentence, so that lengths compare: twice a day the sea lifts the water and turns a mill.
PROSE = {
    "english": "Twice a day the sea lifts the water behind the gate, and the falling tide turns the mill.",
    "german": "Zweimal am Tag hebt das Meer das Wasser hinter dem Tor, und die Ebbe treibt die Mühle an.",
    "french": "Deux fois par jour, la mer élève l'eau derrière la porte, et le reflux fait tourner le moulin.",
    "spanish": "Dos veces al día el mar eleva el agua tras la compuerta, y la bajamar mueve el molino.",
    "portuguese": "Duas vezes por dia o mar eleva a água atrás da comporta, e a maré vazante move o moinho.",
    "turkish": "Deniz günde iki kez kapağın ardındaki suyu yükseltir ve çekilen sular değirmeni döndürür.",
    "vietnamese": "Mỗi ngày hai lần biển nâng nước sau cửa cống, và khi triều rút, nước làm quay cối xay.",
    "polish": "Dwa razy dziennie morze podnosi wodę za śluzą, a odpływ obraca młyńskie koło.",
    "finnish": "Kahdesti päivässä meri nostaa veden portin taakse, ja laskuvesi pyörittää myllyä.",
    "yoruba": "Lẹ́ẹ̀mejì lójúmọ́ ni òkun máa ń gbé omi sókè lẹ́yìn ilẹ̀kùn, ọlọ sì ń yí.",
    "greek": "Δύο φορές την ημέρα η θάλασσα ανεβάζει το νερό πίσω από την πύλη και ο μύλος γυρίζει.",
    "russian": "Дважды в день море поднимает воду за воротами, и отлив вращает мельничное колесо.",
    "ukrainian": "Двічі на день море підіймає воду за брамою, і відплив обертає млинове колесо.",
    "armenian": "Օրը երկու անգամ ծովը բարձրացնում է ջուրը դարպասի հետևում, և ջրաղացը պտտվում է։",
    "georgian": "დღეში ორჯერ ზღვა ასწევს წყალს ჭიშკრის უკან და წისქვილი ტრიალებს.",
    "hebrew": "פעמיים ביום הים מרים את המים מאחורי השער, והשפל מסובב את הטחנה.",
    "arabic": "مرتين في اليوم يرفع البحر الماء خلف البوابة، ويدير الجزر الطاحونة.",
    "persian": "دریا روزی دو بار آب را پشت دریچه بالا می‌برد و جزر آسیاب را می‌چرخاند.",
    "urdu": "سمندر دن میں دو بار پانی کو پھاٹک کے پیچھے اٹھاتا ہے اور چکی گھومتی ہے۔",
    "hindi": "दिन में दो बार समुद्र द्वार के पीछे पानी उठाता है और उतरता ज्वार चक्की घुमाता है।",
    "bengali": "দিনে দুবার সমুদ্র ফটকের পিছনে জল তোলে, আর ভাটার টানে জাঁতা ঘোরে।",
    "tamil": "ஒரு நாளில் இருமுறை கடல் நீரை வாயிலின் பின்னால் உயர்த்துகிறது, ஆலை சுழல்கிறது.",
    "telugu": "రోజుకు రెండుసార్లు సముద్రం తలుపు వెనుక నీటిని పెంచుతుంది, మర తిరుగుతుంది.",
    "thai": "วันละสองครั้งทะเลยกน้ำขึ้นหลังประตู และน้ำลงหมุนโรงสี",
    "khmer": "ពីរដងក្នុងមួយថ្ងៃ សមុទ្រលើកទឹកនៅក្រោយទ្វារ ហើយម៉ាស៊ីនកិនវិល។",
    "burmese": "တစ်နေ့ နှစ်ကြိမ် ပင်လယ်သည် တံခါးနောက်ရှိ ရေကို မြှင့်တင်ပြီး ကြိတ်ဆုံ လည်သည်။",
    "tibetan": "ཉིན་རེར་ཐེངས་གཉིས་རྒྱ་མཚོས་སྒོའི་རྒྱབ་ཀྱི་ཆུ་མཐོར་འདེགས་པ་རེད།",
    "amharic": "ባሕሩ በቀን ሁለት ጊዜ ከበሩ በስተጀርባ ውኃውን ከፍ ያደርጋል፤ ወፍጮውም ይዞራል።",
    "chinese": "海水一天两次在闸门后升起，退潮时推动水磨转动。",
    "japanese": "海は一日に二度、水門のうしろの水を持ち上げ、引き潮が水車を回す。",
    "korean": "바다는 하루에 두 번 수문 뒤의 물을 들어 올리고, 썰물이 물레방아를 돌린다.",
    "mongolian": "ᠳᠠᠯᠠᠢ ᠡᠳᠦᠷ ᠲᠤᠲᠤᠮ ᠬᠣᠶᠠᠷ ᠤᠳᠠᠭ᠎ᠠ ᠤᠰᠤ ᠶᠢ ᠳᠡᠭᠡᠭᠰᠢᠯᠡᠭᠦᠯᠦᠨ᠎ᠡ",
    "cherokee": "ᎠᎹ ᏔᎵ ᏧᎩᏥᏍᎪᎢ ᎠᎺᏉᎯ ᎤᏌᎳᏗᎰᎢ",
    "cuneiform": "𒀀𒈾 𒂍𒃲 𒁹𒀀𒀊𒁀 𒈨𒌍 𒀭𒂗𒆤",
}  # fmt: skip

_NUMBERS = [[round(7.31 * k % 97, 4), k * k, -k / 3] for k in range(40)]
_NOISE = b"".join(hashlib.sha256(bytes([k])).digest() for k in range(24))

KINDS = {
    "numbers as JSON": json.dumps(_NUMBERS),
    "digits": "".join(str(k * 7919) for k in range(200)),
    "base64": base64.b64encode(_NOISE).decode(),
    "hexadecimal": _NOISE.hex(),
    "code": "def gcd(a, b):\n    while b:\n        a, b = b, a % b\n    return a\n\n",
    "markup": '<tr><td class="x">&nbsp;</td><td colspan="2">—</td></tr>\n',
    "formulae": r"\sum_{k=0}^{n}\binom{n}{k}x^{k}y^{n-k}=\left(x+y\right)^{n}",
    "white space": "." + " \t\n  \n\t\t   \r\n" * 8,
    "punctuation": "!?;:—…«»„“”‚‘’‹›·•†‡§¶",
    "emoji": "🌊🏗️👩🏽‍🔬🧑‍🤝‍🧑🇯🇵⚙️🪵",
    "capitals": "TIDAL MILLS OF THE ATLANTIC COAST ",
    "letters at random": "qzxvkjw wqpzmxn bvcxzlk jhgfdsq ",
    "combining marks": "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘",
    "one letter for a phrase": "ﷺ",
    "ligatures": "ﬁﬂﬃﬄ㍿㌀㌔㏑℀℡™",
    "letters of mathematics": "𝕋𝕙𝕖 𝓽𝓲𝓭𝓮 𝖙𝖚𝖗𝖓𝖘",
    "decomposed Hangul": "각낙닥락막박삭악작착",
    "full width": "Ｔｈｅ　ｔｉｄｅ　ｔｕｒｎｓ",
    "private use": "\ue000\uf8ff\U000f0000",
    "zero width": "a\u200bb\u200cc\u200dd\ufeff\u2060",
    "controls": "\x01\x02\x1b[31m\x7f\x85",
}


def long_texts(characters: int) -> dict[str, str]:
    """Return every text by name, repeated until it has about the given length.

    Args:
        characters: number of characters of each text.
    """
    return {
        name: (f"{text} " if name in PROSE else text) * max(1, characters // len(text))
        for name, text in {**PROSE, **KINDS}.items()
    }
