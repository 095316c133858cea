"""Tests of what objectives in Chinese and Japanese ask for: lists, fields, voices, questions."""

import pytest

from toolkit.planning.reading.capability_names import CapabilityNames
from toolkit.planning.reading.reader import read_objective

NAMES = CapabilityNames(
    fields={"来 源": "max_sources", "语 速": "speed", "种 子": "seed", "シ ー ド": "seed"},
    fields_by_kind={
        "research": frozenset({"max_sources"}),
        "speech": frozenset({"speed"}),
        "image": frozenset({"seed"}),
    },
    numbers=frozenset({"max_sources", "speed", "seed"}),
)
VOICE = "art_01k6x10y6p52xn9zz1fyw2w77y"


def list_kinds(objective: str) -> list[str]:
    """List the kinds that an objective asks for."""
    return sorted(one.kind for one in read_objective(objective, NAMES).requests)


@pytest.mark.parametrize(
    ("objective", "kinds"),
    [
        ("梅、兰、竹、菊各画一幅水墨画。", ["image"] * 4),
        ("为北京、上海和广州各写一段简介。", ["text"] * 3),
        ("写三首诗，分别关于春天、夏天和秋天。", ["text"] * 3),
        ("写三首俳句，每首配一张图。", ["image"] * 3 + ["text"] * 3),
        ("把“你好”“谢谢”“再见”分别念出来。", ["speech"] * 3),
        ("猫、犬、うさぎの絵をそれぞれ一枚ずつ描いて。", ["image"] * 3),
        ("京都と奈良について、それぞれ紹介文を書いて。", ["text"] * 2),
        ("卵、砂糖、牛乳を使うプリンのレシピを書いて。", ["text"]),
        ("介绍茶、酒和咖啡的区别。", ["text"]),
    ],
)
def test_lists_are_spread_over_what_is_asked_of_each(objective: str, kinds: list[str]) -> None:
    """Lists at the marks of these languages are copies; other enumerations are topics."""
    assert list_kinds(objective) == kinds


@pytest.mark.parametrize(
    ("objective", "name", "value"),
    [
        ("找茶马古道的资料，来源不超过五个。", "max_sources", 5),
        ("找茶马古道的资料，用四条来源。", "max_sources", 4),
        ("把“欢迎光临”念出来，语速调到1.25。", "speed", 1.25),
        ("画一只鹅，种子设为2024。", "seed", 2024),
        ("雨の港、油絵風、シードは5。", "seed", 5),
    ],
)
def test_a_field_and_its_number_may_stand_apart(objective: str, name: str, value: float) -> None:
    """Particles, verbs of setting, bounds and counters stand between the two."""
    (request,) = read_objective(objective, NAMES).requests
    assert [one.value for one in request.measures if one.name == name] == [value]


@pytest.mark.parametrize(
    "objective",
    [
        f"{VOICE}の声を「店長」として登録し、その声で「安いです。」と言わせてください。",
        f"{VOICE}の音声から「たけし」という声を作り、「起立、礼」と読ませて。",
        f"把{VOICE}里的嗓音登记成“阿宝”，再用它念“开饭啦”。",
        f"{VOICE}是我女儿的录音，用它做一个叫“小葵”的声音，然后让这个声音说“你好”。",
    ],
)
def test_the_voice_of_a_recording_that_gets_a_name_is_its_clone(objective: str) -> None:
    """What is said afterwards is said with it."""
    reading = read_objective(objective, NAMES)
    assert [one.kind for one in reading.requests] == ["clone", "speech"]
    assert reading.requests[0].artifact_ids == (VOICE,)
    assert reading.requests[1].inputs == (0,)


@pytest.mark.parametrize(
    ("objective", "kinds"),
    [
        ("为什么大雁要排成人字形飞？", ["text"]),
        ("猫はなぜ喉を鳴らすのでしょうか。三文で教えて。", ["text"]),
        ("雪の詩を書いて、その音声も付けて。", ["speech", "text"]),
        ("写一段茶的介绍，再把这段文字读出来。", ["speech", "text"]),
        ("写一首诗，做成语音。", ["speech", "text"]),
        ("台本を書いて。録音はこっちでやる。", ["text"]),
        ("折り方を説明して。それを耳で聞けるようにもしてほしい。", ["speech", "text"]),
    ],
)
def test_questions_possessions_and_what_others_do(objective: str, kinds: list[str]) -> None:
    """A question asks once; what others do is not asked for."""
    assert list_kinds(objective) == kinds
