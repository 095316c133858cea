"""Closed classes of words of each language that its lexicon does not tell apart."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import cast

from .tokens import fold_text


@dataclass(frozen=True, slots=True)
class Grammar:
    """The words by which a phrase is told from a clause.

    Attributes:
        definite: determiners that speak of a thing already there.
        possessive: those that speak of a thing of somebody's.
        finite: verbs without which no statement of the language goes: auxiliaries, modals.
        relative: words that open a clause about the thing before them.
        particles: second parts of verbs, which may stand apart from the first.
        subject: pronouns that can only be a subject.
        impersonal: those of them that stand for a thing, or for nothing: `il pleut`.
        objects: pronouns of who is given something: `me`.
        pronouns: those that stand for a thing as an object.
        enclitics: those that a verb can end in, as one word or after a hyphen.
        article_prefix: the definite article where it is written as one with its noun.
        addressees: those for who is asked.
        wants: verbs by which the first person asks for something.
        now: words for this moment, which make a question one about live data.
        means: prepositions of the way that something is sent by.
        leading: prepositions of where something is brought to.
        turning: prepositions of what something is turned into.
        causatives: verbs that have others do something: `have it framed`.
        styling: verbs that say how something is to be, and not what is done with it.
        conditions: words that open a condition, and no question where none is asked.
        times: words that say how often.
        parts: nouns of what a text consists of.
        listed: nouns that are counted within one text: `five questions`.
        getting: verbs that bring to light what is so, whoever made it.
        fetching: those that bring a thing, which nothing here can.
        moving: verbs that do something to a thing that is there.
        playing: verbs of what is heard and was made by others.
        live: nouns of what is another tomorrow: prices, tickets, the weather.
        held: nouns of what somebody keeps, and nothing here can look into.
        comparing: words that open a comparison.
        comparative: the ending of an adjective that compares.
        soon: words for a day to come.
        converting: verbs that turn one thing into another.
        into: what stands before the other.
        same: words for what was said or made before.
        wishes: verbs of what somebody would like, after those of `wishing`.
        ordering: words that open a clause about what is done before or after.
        earlier: words for a thing to be made before what was asked for.
        topical: words after a noun that make it a work about something.
        needing: verbs of what somebody lacks.
        momentary: words of what is so today, and may be another tomorrow.
        retracting: what takes back that something was asked for.
        saying: verbs after which quoted words are said, and no name.
        ourselves: words for who asks as the one who does something.
        parts_of_card: nouns of what a card consists of, as a clause about them opens.
        voices: nouns of what a recording has of who speaks.
        reasons: words that ask for a reason.
        manner: those that ask in what way, unless one of `measuring` follows.
        measuring: words after those that make them ask for a state or a number: `how long`.
        gerund: the ending of a verb that stands as a noun: `a booking system`.
        addressers: pronouns of who asks, as an object.
        inflections: endings of verbs by which they state and do not ask.
        telling: verbs of what is done by words alone: `invite`.
        giving: verbs that give somebody something: `give the shop a name`.
        placing: prepositions of a part's place on the whole.
        verb_final: auxiliaries that end a clause after its verb; none where verbs do not end it.
        recipients: prepositions of whom a text is for, which is not its subject.
        imagining: verbs of thinking of a thing, as a scene for what is asked for.
        nothing: pronouns for nothing at all.
        emphatic: auxiliaries that stress an imperative.
        further: adjectives before such a pronoun: `a second one`.
        another: pronouns for one more of what was named.
        periods: nouns of time, which come again.
        partitive: prepositions between `each` and what there are several of.
        plural: endings of a noun that stands for many.
        sides: words after a number for the side of a picture that it measures.
        concord: words by which a negation is said again: `no quiero ni dibujos`.
        progressive: endings of a verb that goes on, and is no noun before an object.
    """

    definite: frozenset[str] = frozenset()
    possessive: frozenset[str] = frozenset()
    finite: frozenset[str] = frozenset()
    relative: frozenset[str] = frozenset()
    particles: frozenset[str] = frozenset()
    subject: frozenset[str] = frozenset()
    impersonal: frozenset[str] = frozenset()
    objects: frozenset[str] = frozenset()
    pronouns: frozenset[str] = frozenset()
    enclitics: frozenset[str] = frozenset()
    article_prefix: str = ""
    addressees: frozenset[str] = frozenset()
    wants: frozenset[str] = frozenset()
    now: tuple[str, ...] = ()
    means: frozenset[str] = frozenset()
    leading: frozenset[str] = frozenset()
    turning: frozenset[str] = frozenset()
    causatives: frozenset[str] = frozenset()
    styling: frozenset[str] = frozenset()
    conditions: frozenset[str] = frozenset()
    times: Mapping[str, int] = field(default_factory=dict)
    listed: frozenset[str] = frozenset()
    parts: frozenset[str] = frozenset()
    getting: frozenset[str] = frozenset()
    fetching: frozenset[str] = frozenset()
    moving: frozenset[str] = frozenset()
    playing: frozenset[str] = frozenset()
    live: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()
    comparing: frozenset[str] = frozenset()
    comparative: tuple[str, ...] = ()
    soon: tuple[str, ...] = ()
    converting: frozenset[str] = frozenset()
    into: frozenset[str] = frozenset()
    same: frozenset[str] = frozenset()
    wishes: frozenset[str] = frozenset()
    wishing: frozenset[str] = frozenset()
    ordering: frozenset[str] = frozenset()
    earlier: frozenset[str] = frozenset()
    placing: frozenset[str] = frozenset()
    retracting: tuple[str, ...] = ()
    topical: frozenset[str] = frozenset()
    needing: frozenset[str] = frozenset()
    momentary: frozenset[str] = frozenset()
    reasons: frozenset[str] = frozenset()
    manner: frozenset[str] = frozenset()
    measuring: frozenset[str] = frozenset()
    giving: frozenset[str] = frozenset()
    telling: frozenset[str] = frozenset()
    gerund: tuple[str, ...] = ()
    inflections: tuple[str, ...] = ()
    addressers: frozenset[str] = frozenset()
    saying: frozenset[str] = frozenset()
    ourselves: tuple[str, ...] = ()
    parts_of_card: tuple[str, ...] = ()
    voices: frozenset[str] = frozenset()
    verb_final: frozenset[str] = frozenset()
    recipients: frozenset[str] = frozenset()
    imagining: frozenset[str] = frozenset()
    nothing: frozenset[str] = frozenset()
    emphatic: frozenset[str] = frozenset()
    further: frozenset[str] = frozenset()
    another: frozenset[str] = frozenset()
    periods: frozenset[str] = frozenset()
    partitive: frozenset[str] = frozenset()
    plural: tuple[str, ...] = ()
    sides: Mapping[str, str] = field(default_factory=dict)
    concord: frozenset[str] = frozenset()
    progressive: tuple[str, ...] = ()


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


GRAMMARS: Mapping[str, Grammar] = {
    "en": Grammar(
        concord=_words("or nor"),
        definite=_words("the this that these those its all both"),
        possessive=_words("my our your his her their"),
        finite=_words(
            "is are was were am has had will would shall should can could may might must isn't "
            "aren't wasn't won't can't goes becomes comes gets do does did wants keeps that's it's "
            "there's belongs needs"
        ),
        relative=_words("that which who whose where when while because since if as so"),
        particles=_words("up aloud out down in together over off back"),
        subject=_words("i we he she they who"),
        objects=_words("me us him you"),
        pronouns=_words("it them this that these those"),
        addressees=_words("you u"),
        wants=_words("want need"),
        now=(
            "at the moment",
            "this very minute",
            "this minute",
            "this very moment",
            "at this moment",
            "currently",
            "at present",
            "as we speak",
            "right now",
            "just now",
            "last night",
            "yesterday",
            "this morning",
            "this afternoon",
            "tonight",
            "today",
            "on time",
        ),
        means=_words("by via"),
        leading=_words("through to into onto in on at over under for"),
        turning=_words("as into"),
        causatives=_words("have get let"),
        styling=_words(
            "keep make set address sign base aim tailor start end begin open close let phrase "
            "word call title name format structure dedicate limit pitch cap hold leave use have "
            "take treat put turn bring split divide mix blend tone do get see find want give add "
            "include mention finish stick round write call spell"
        ),
        conditions=_words("if whether"),
        times={"once": 1, "twice": 2, "thrice": 3},
        parts=_words(
            "stanza stanzas verse verses line lines paragraph paragraphs chapter chapters section "
            "sections scene scenes act acts question questions rhyme rhymes chorus refrain"
        ),
        listed=_words(
            "question questions name names idea ideas keyword keywords hashtag hashtags answer "
            "answers term terms option options"
        ),
        getting=_words(
            "get give fetch bring grab find check show tell look see pull search need want list "
            "monitor hunt locate retrieve"
        ),
        fetching=_words("get fetch bring grab obtain pass hand"),
        moving=_words(
            "turn put set return switch change move update fix modify adjust alter improve "
            "overhaul reorganise reorganize reorder rearrange revamp tidy trim tweak extend "
            "expand correct edit clean"
        ),
        playing=_words("play"),
        live=_words(
            "price prices quote rate weather forecast news headlines ticket tickets flight flights "
            "seat seats hotel hotels score scores traffic timetable departures arrivals "
            "availability balance restaurant restaurants deal deals bargain train trains bus buses "
            "taxi cab showtimes fare fares apartment apartments flat flats job jobs vacancies"
        ),
        held=_words(
            "inbox mailbox mail mails email emails messages calendar agenda crm folder folders "
            "file files drive contacts account accounts album photos server servers repository "
            "repo phone laptop computer desktop hard-disk disk printer wallet voicemail voicemails "
            "dropbox screen parcel package luggage keys invoices bills "
            "payslip subscriptions subscription browser bookmarks"
        ),
        comparing=_words("more less"),
        comparative=("er",),
        converting=_words("turn put make convert transform change"),
        into=_words("into to"),
        same=_words("same"),
        wishes=_words("love like enjoy appreciate welcome hear"),
        wishing=_words("would could"),
        ordering=_words("before after once when"),
        earlier=_words("first beforehand"),
        needing=_words("needs wants need want needed wanted"),
        momentary=_words("latest current today today's now live breaking recent tomorrow's"),
        topical=_words("about on for against"),
        reasons=_words("why"),
        manner=_words("how"),
        measuring=_words(
            "is are much many long late soon often far busy bad full cold warm hot high low deep "
            "crowded about come"
        ),
        gerund=("ing",),
        inflections=("ed",),
        addressers=_words("me us"),
        telling=_words("invite warn alert remind notify inform advertise sell"),
        giving=_words("give hand offer lend grant find get"),
        retracting=("scrap that", "forget that", "cancel that", "strike that", "ignore that"),
        recipients=_words("for"),
        progressive=("ing",),
        imagining=_words("imagine suppose"),
        nothing=_words("nothing none"),
        emphatic=_words("do"),
        further=_words("second third fourth further different other new"),
        periods=_words(
            "second minute hour day night morning afternoon evening week weekend fortnight month "
            "quarter season term year decade time monday tuesday wednesday thursday friday "
            "saturday sunday january february march april may june july august september october "
            "november december spring summer autumn fall winter christmas easter"
        ),
        partitive=_words("of"),
        plural=("s",),
        sides={
            "wide": "width",
            "width": "width",
            "across": "width",
            "high": "height",
            "tall": "height",
            "height": "height",
        },
        another=_words("one another"),
        placing=_words("over above below beneath beside under underneath behind against"),
        soon=("tomorrow", "next week", "this week", "this weekend", "this evening", "tonight"),
    ),
    "de": Grammar(
        definite=_words("der die das den dem des dieser diese dieses diesen diesem jener jene"),
        possessive=_words(
            "mein meine meinen meinem meiner meines unser unsere unseren unserem unserer dein "
            "deine ihr ihre ihren ihrem ihrer sein seine seinen seinem seiner"
        ),
        finite=_words(
            "ist sind war waren bin hat haben hatte wird werden wurde soll sollen sollte kann "
            "konnen konnte muss mussen darf durfen kommt kommen geht gehort"
        ),
        verb_final=_words(
            "werden wird wurde wurden worden konnte konnten konntest kannst mogen lassen haben"
        ),
        turning=_words("als in"),
        relative=_words("dass weil wenn wo wahrend damit ob als wie"),
        particles=_words("vor auf ab aus nach zusammen her hin"),
        subject=_words("ich wir er sie du"),
        objects=_words("mir uns ihm ihr"),
        pronouns=_words("es sie ihn das dies diese diesen dieses"),
        addressees=_words("du sie ihr"),
        wants=_words(
            "brauche brauchen benotige benotigen mochte mochten will wollen wunsche hatte"
        ),
        now=(
            "gerade jetzt",
            "im moment",
            "in diesem moment",
            "momentan",
            "derzeit",
            "jetzt",
            "zurzeit",
            "heute",
            "gestern",
            "letzte nacht",
        ),
        soon=("morgen", "nächste woche", "diese woche", "am wochenende"),
        means=_words("per via"),
        conditions=_words("ob wenn falls"),
        times={"einmal": 1, "zweimal": 2, "dreimal": 3},
        listed=_words(
            "frage fragen name namen idee ideen stichwort stichworter hashtag hashtags begriff "
            "begriffe antwort antworten option optionen vorschlag vorschlage claim claims"
        ),
        getting=_words(
            "gib gebt geben zeig zeige zeigen such suche suchen finde finden hol hole holen schau "
            "schaue schauen sieh nenn nenne nennen sag sage pruf prufe prufen vergleich "
            "vergleiche"
        ),
        live=_words(
            "preis preise kurs wetter vorhersage nachrichten schlagzeilen fahrkarte fahrkarten "
            "flug fluge hotel hotels ergebnis ergebnisse verkehr stau fahrplan abfahrt abfahrten "
            "ankunft verspatung verfugbarkeit kontostand restaurant restaurants angebot angebote "
            "zug zuge bus busse taxi wohnung wohnungen stellen"
        ),
        held=_words(
            "posteingang postfach mail mails email emails nachricht kalender ordner datei dateien "
            "laufwerk kontakte konto konten album fotos server repository repo handy telefon "
            "laptop computer rechner drucker festplatte anrufbeantworter mailbox browser "
            "lesezeichen terminkalender"
        ),
        recipients=_words("fur"),
        sides={"breit": "width", "breite": "width", "hoch": "height", "hohe": "height"},
        another=_words("eins eines eine einen"),
        placing=_words("im am in auf uber hinter als"),
    ),
    "fr": Grammar(
        definite=_words("le la les l' ce cet cette ces du des"),
        possessive=_words("mon ma mes notre nos ton ta tes votre vos son sa ses leur leurs"),
        finite=_words("est sont etait ont avait sera doit doivent peut peuvent va vont faut"),
        turning=_words("en comme"),
        relative=_words("qui que dont ou parce lorsque quand si comme"),
        subject=_words("je nous il elle ils elles on tu"),
        impersonal=_words("il elle ils elles on"),
        objects=_words("moi nous lui leur m"),
        pronouns=_words("ca cela ceci"),
        addressees=_words("tu vous"),
        wants=_words("veux voudrais voulons voudrions aimerais aimerions souhaite souhaitons"),
        now=(
            "en ce moment",
            "à l'instant",
            "à l’instant",
            "actuellement",
            "maintenant",
            "hier soir",
            "ce matin",
            "cet après-midi",
            "ce soir",
            "aujourd'hui",
            "aujourd’hui",
            "cette nuit",
        ),
        soon=("demain", "la semaine prochaine", "cette semaine", "ce week-end"),
        means=_words("par via"),
        conditions=_words("si"),
        listed=_words(
            "question questions nom noms idee idees mot mots hashtag hashtags reponse reponses "
            "terme termes option options suggestion suggestions"
        ),
        enclitics=_words("le la les en"),
        getting=_words(
            "donne donnez montre montrez cherche cherchez trouve trouvez regarde regardez dis "
            "dites verifie verifiez compare comparez consulte consultez"
        ),
        live=_words(
            "prix cours meteo previsions nouvelles billet billets vol vols hotel hotels score "
            "scores trafic horaire horaires depart departs arrivee retard disponibilite solde "
            "restaurant restaurants train trains bus taxi appartement appartements"
        ),
        held=_words(
            "boite messagerie mail mails email emails courriel courriels calendrier agenda "
            "dossier dossiers fichier fichiers contacts compte comptes album serveur depot "
            "telephone portable ordinateur imprimante disque repondeur navigateur favoris"
        ),
        recipients=_words("pour"),
        sides={"largeur": "width", "large": "width", "hauteur": "height", "haut": "height"},
        another=_words("un une autre"),
        placing=_words("en au a dans sur comme"),
    ),
    "es": Grammar(
        definite=_words("el la los las este esta estos estas ese esa esos esas aquel del al"),
        possessive=_words("mi mis nuestro nuestra nuestros nuestras tu tus su sus"),
        finite=_words("es son era ha han habia sera debe deben puede pueden va van estan"),
        turning=_words("en como"),
        relative=_words("que quien cuyo donde porque cuando si como"),
        subject=_words("yo nosotros nosotras ella ellos ellas"),
        objects=_words("me nos le les"),
        pronouns=_words("esto eso ello"),
        addressees=_words("tu usted ustedes vosotros"),
        wants=_words("quiero queremos necesito necesitamos quisiera quisieramos deseo"),
        now=(
            "ahora mismo",
            "en este momento",
            "en estos momentos",
            "actualmente",
            "ahora",
            "hoy",
            "ayer",
            "anoche",
            "esta mañana",
            "esta tarde",
            "esta noche",
        ),
        soon=("mañana", "la semana que viene", "esta semana", "este fin de semana"),
        means=_words("por via"),
        conditions=_words("si"),
        listed=_words(
            "pregunta preguntas nombre nombres idea ideas palabra palabras hashtag hashtags "
            "respuesta respuestas termino terminos opcion opciones sugerencia sugerencias"
        ),
        enclitics=_words(
            "lo la los las melo mela melos melas noslo nosla noslos noslas selo sela selos selas"
        ),
        getting=_words(
            "da dame deme muestra muestrame busca buscame encuentra mira dime diga comprueba "
            "compara consulta"
        ),
        live=_words(
            "precio precios cotizacion clima pronostico noticias billete billetes entrada "
            "entradas vuelo vuelos hotel hoteles marcador resultado resultados trafico horario "
            "horarios salida retraso disponibilidad saldo restaurante restaurantes tren trenes "
            "autobus taxi piso pisos"
        ),
        held=_words(
            "bandeja buzon correo correos mail mails email emails calendario agenda carpeta "
            "carpetas archivo archivos contactos cuenta cuentas album servidor repositorio "
            "telefono movil ordenador computadora impresora disco contestador navegador "
            "marcadores"
        ),
        recipients=_words("para"),
        sides={"ancho": "width", "alto": "height"},
        another=_words("uno una otro otra"),
        placing=_words("de en al como sobre"),
    ),
    "it": Grammar(
        definite=_words("il lo la i gli le l' questo questa questi queste quel quella quelle"),
        possessive=_words("mio mia miei mie nostro nostra nostri nostre tuo tua suo sua suoi loro"),
        finite=_words("sono era ha hanno aveva sara deve devono puo possono va vanno"),
        turning=_words("in come"),
        relative=_words("che chi cui dove perche quando se come"),
        subject=_words("io noi lui"),
        objects=_words("mi ci gli"),
        pronouns=_words("cio questo quello"),
        addressees=_words("tu lei voi"),
        wants=_words("voglio vogliamo vorrei vorremmo desidero desideriamo"),
        now=(
            "in questo momento",
            "adesso",
            "proprio ora",
            "attualmente",
            "al momento",
            "oggi",
            "ieri",
            "stamattina",
            "stanotte",
            "stasera",
            "questa mattina",
        ),
        soon=("domani", "la prossima settimana", "questa settimana", "nel fine settimana"),
        means=_words("per via tramite"),
        conditions=_words("se"),
        listed=_words(
            "domanda domande nome nomi idea idee parola parole hashtag risposta risposte termine "
            "termini opzione opzioni suggerimento suggerimenti"
        ),
        enclitics=_words(
            "lo la li le ne melo mela meli mele mene celo cela celi cele "
            "glielo gliela glieli gliele"
        ),
        getting=_words(
            "da dammi mostra mostrami cerca cercami trova trovami guarda dimmi controlla "
            "confronta consulta"
        ),
        live=_words(
            "prezzo prezzi quotazione meteo previsioni notizie biglietto biglietti volo voli "
            "hotel albergo alberghi punteggio risultato risultati traffico orario orari partenza "
            "ritardo disponibilita saldo ristorante ristoranti treno treni autobus taxi "
            "appartamento appartamenti"
        ),
        held=_words(
            "casella posta mail mails email emails calendario agenda cartella cartelle file "
            "contatti conto conti album server repository telefono cellulare computer portatile "
            "stampante disco segreteria browser preferiti"
        ),
        recipients=_words("per"),
        sides={"larghezza": "width", "altezza": "height"},
        another=_words("uno una altro"),
        placing=_words("come in al sullo di"),
    ),
    "pt": Grammar(
        definite=_words("o a os as este esta estes estas esse essa esses essas aquele aquela"),
        possessive=_words("meu minha meus minhas nosso nossa nossos nossas seu sua seus suas"),
        finite=_words("sao era foi tem tinha sera deve devem pode podem vai vao estao"),
        turning=_words("em como"),
        relative=_words("que quem cujo onde porque quando se como"),
        subject=_words("eu ele ela eles elas"),
        objects=_words("me nos lhe lhes"),
        pronouns=_words("isso isto aquilo"),
        addressees=_words("voce voces tu"),
        wants=_words("quero queremos preciso precisamos gostaria gostariamos queria desejo"),
        now=(
            "agora",
            "neste momento",
            "nesse momento",
            "no momento",
            "atualmente",
            "hoje",
            "ontem",
            "esta manhã",
            "esta tarde",
            "esta noite",
        ),
        soon=("amanhã", "na próxima semana", "esta semana", "este fim de semana"),
        means=_words("por via pelo"),
        conditions=_words("se caso"),
        listed=_words(
            "pergunta perguntas nome nomes ideia ideias palavra palavras hashtag hashtags "
            "resposta respostas termo termos opcao opcoes sugestao sugestoes"
        ),
        enclitics=_words("o a os as lo la los las no na nos nas"),
        getting=_words(
            "da mostra mostre busca busque procura procure encontra encontre veja ve diga diz "
            "verifica verifique compara compare consulta consulte"
        ),
        live=_words(
            "preco precos cotacao clima previsao noticias bilhete bilhetes passagem passagens voo "
            "voos hotel hoteis placar resultado resultados transito horario horarios partida "
            "atraso disponibilidade saldo restaurante restaurantes trem trens comboio comboios "
            "autocarro onibus taxi apartamento apartamentos"
        ),
        held=_words(
            "caixa correio mail mails email emails calendario agenda pasta pastas arquivo "
            "arquivos ficheiro ficheiros contatos contactos conta contas album servidor "
            "repositorio telefone celular telemovel computador impressora disco navegador "
            "favoritos"
        ),
        recipients=_words("para"),
        sides={"largura": "width", "altura": "height"},
        another=_words("um uma outro outra"),
        placing=_words("de no em como ao"),
    ),
    "ar": Grammar(
        article_prefix="ال",
        definite=_words("هذا هذه ذلك تلك هؤلاء"),
        finite=_words("كان كانت يكون تكون يجب يمكن"),
        relative=_words("الذي التي الذين ان لان عندما اذا كما"),
        subject=_words("انا نحن هو هي هم"),
        addressees=_words("انت انتم"),
        wants=_words("اريد نريد احتاج نحتاج اود نود"),
        listed=_words("اسماء اسم افكار فكره اسيله سوال عناوين مقترحات"),
        now=(
            "الآن",
            "الان",
            "حاليا",
            "حاليًا",
            "في هذه اللحظة",
            "اليوم",
            "أمس",
            "الليلة",
            "هذا الصباح",
        ),
        means=_words("عبر"),
        conditions=_words("اذا"),
        enclitics=_words("ه ها هم هما هن هالي هالنا"),
    ),
    "ja": Grammar(
        now=(
            "今の",
            "今、",
            "今は",
            "今って",
            "いま、",
            "ただいま",
            "現在の",
            "いまの",
            "今すぐ",
            "リアルタイム",
            "今日",
            "昨日",
            "昨夜",
            "ゆうべ",
            "今夜",
            "今晩",
            "今朝",
        ),
        listed=_words(
            "名前 ネーミング 言葉 キーワード ハッシュタグ 質問 アイデア 案 候補 タイトル案 "
            "タイトル 見出し キャッチコピー コピー スローガン 標語 ヒント コツ 豆知識"
        ),
        parts_of_card=("背景", "本文", "中央", "真ん中", "挿絵", "左に", "右に", "上に", "下に"),
        ourselves=("自分で", "自分たちで", "こっちで", "こちらで", "うちで", "私がや", "私がす"),
        voices=_words("声 音声 ボイス 声色"),
    ),
    "zh": Grammar(
        now=(
            "现在",
            "此刻",
            "目前",
            "現在",
            "当前",
            "當前",
            "这会儿",
            "實時",
            "实时",
            "今天",
            "昨天",
            "今晚",
            "昨晚",
            "今早",
            "今日",
        ),
        listed=_words(
            "名字 名称 名稱 关键词 關鍵詞 标签 標籤 问题 問題 点子 點子 词语 詞語 建议 建議 "
            "标题 標題 标语 標語 口号 口號 广告语 廣告語 广告词 廣告詞 谜语 謎語 "
            "脑筋急转弯 腦筋急轉彎"
        ),
        saying=_words("说 說 説 讲 講 念 唸 读 讀"),
        parts_of_card=(
            "背景",
            "正文",
            "中间",
            "中間",
            "配图",
            "配圖",
            "插图",
            "插圖",
            "底图",
            "底圖",
        ),
        ourselves=("我自己", "自己来", "自己來", "自己做", "我来", "我來", "我们自己", "我們自己"),
        voices=_words("声音 聲音 嗓音 嗓子 音色 语音 語音 声线 聲線"),
    ),
}
_NO_GRAMMAR = Grammar()


@cache
def get_grammar(code: str) -> Grammar:
    """Return the closed classes of a language; empty for one that has none here.

    Its file in `grammars` adds to those above.
    """
    grammar = GRAMMARS.get(code, _NO_GRAMMAR)
    source = resources.files(__package__) / "grammars" / f"{code}.toml"
    if not source.is_file():
        return grammar
    data = cast("dict[str, str]", tomllib.loads(source.read_text(encoding="utf-8")))
    added = {name: _words(fold_text(text)) | getattr(grammar, name) for name, text in data.items()}
    return replace(grammar, **added)
