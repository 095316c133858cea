"""Facts that research gathers: the sandbox's articles, and openings in other languages."""

from collections.abc import Mapping
from urllib.parse import quote

import numpy as np

from tests.planning.review.evidence import build_evidence
from tests.planning.sample_capabilities import FACTS
from toolkit.planning.review.evidence import Evidence
from toolkit.plugins import Blob
from toolkit.sandbox.text.library import Article, load_articles

# language, topic, title, first sentences
OPENINGS = (
    ("de", "Gezeitenkraftwerk", "Gezeitenkraftwerk",
     "Ein Gezeitenkraftwerk wandelt die Bewegung des Meeres in Strom um. Die erste große Anlage "
     "steht seit 1966 an der Mündung der Rance und läuft noch immer."),
    ("fr", "marée", "Marée",
     "La marée est la variation du niveau de la mer, due à la Lune et au Soleil. Elle monte et "
     "descend deux fois par jour sur la plupart des côtes."),
    ("es", "mareas", "Marea",
     "La marea es el cambio periódico del nivel del mar, que se debe a la Luna y al Sol. En la "
     "mayoría de las costas sube y baja dos veces al día."),
    ("it", "Via della Seta", "Via della Seta",
     "La Via della Seta era una rete di strade che per più di mille anni collegò la Cina con il "
     "Mediterraneo. Pochi mercanti la percorrevano per intero."),
    ("pt", "energia das marés", "Energia maremotriz",
     "A energia das marés é obtida do movimento do mar. A primeira grande central foi construída "
     "em França e ainda está em uso nos dias de hoje."),
    ("ja", "潮汐発電", "潮力発電",
     "潮汐発電は、潮の満ち引きを利用して電気をつくる方法である。フランスのランス川に大きな発電所があり、今も動いている。"),
    ("zh", "潮汐能", "潮汐能",
     "潮汐能是利用海水涨落的力量来发电的能源。法国的朗斯河口有一座大型电站，自一九六六年以来一直在运行，供应周围的城镇用电。"),
    ("ar", "طاقة المد", "طاقة المد والجزر",
     "طاقة المد والجزر هي طاقة تستخرج من حركة مياه البحر. أقيمت أول محطة كبيرة في فرنسا عند مصب "
     "نهر الرانس، وما زالت تعمل."),
    ("ru", "приливная энергия", "Приливная электростанция",
     "Приливная электростанция использует энергию приливов и отливов моря. Первая большая "
     "станция построена во Франции и работает до сих пор."),
)  # fmt: skip


def build_research(
    topic: str, output: Mapping[str, object], language: str | None = None
) -> Evidence:
    """Build the evidence of research on a topic."""
    fields = {"topic": topic, **({"language": language} if language else {})}
    return build_evidence(FACTS, fields, Blob(b"{}", "application/json"), **output)


def write_output(
    topic: str, title: str, summary: str, sections: tuple[tuple[str, str], ...], language: str
) -> dict[str, object]:
    """Write an output of `research.gather`."""
    url = f"https://{language}.wikipedia.org/wiki/{quote(title.replace(' ', '_'))}"
    parts = [{"title": heading, "text": text} for heading, text in sections]
    return {
        "topic": topic, "title": title, "summary": summary, "sections": parts,
        "sources": [{"title": title, "url": url, "license": "CC BY-SA 4.0"}],
        "text": "\n\n".join([f"{title}: {summary}", *(f"{h}: {t}" for h, t in sections)]),
        "synthesis": None, "source_kind": "http", "warnings": [],
    }  # fmt: skip


def list_articles() -> list[Article]:
    """List the sandbox's articles that are not disambiguation pages."""
    return [article for article in load_articles() if not article.disambiguation]


def gather_good(seed: int) -> Evidence:
    """Gather facts on a topic, which is the title of an article or a similar phrase."""
    draw = np.random.default_rng(seed)
    if seed % 5 == 0:
        language, topic, title, summary = OPENINGS[seed // 5 % len(OPENINGS)]
        return build_research(topic, write_output(topic, title, summary, (), language), language)
    articles = list_articles()
    article = articles[int(draw.integers(len(articles)))]
    topic = str(draw.choice([article.title, f"history of {article.title.lower()}", article.title]))
    count = int(draw.integers(0, len(article.sections) + 1))
    output = write_output(topic, article.title, article.summary, article.sections[:count], "en")
    return build_research(topic, output)
