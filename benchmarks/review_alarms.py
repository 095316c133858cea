"""False alarms of the reviewer: the share of generated good artifacts that it blocks.

Run `python -m benchmarks.review_alarms`; `--number 100` is quicker, `--kind sound` measures one
kind. It uses the makers of the written set with other arguments. Each figure is the share that is
blocked, and must stay below one in a hundred.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import get_args

import numpy as np

from benchmarks._report import report
from benchmarks.review import index_capabilities
from benchmarks.sets.review.makers import Made, make
from tests.planning.review import facts
from tests.planning.review.evidence import ARTIFACT
from toolkit.capabilities.composition_layout import TemplateName, ThemeName
from toolkit.contract.plans import PlanNode
from toolkit.planning.review.evidence import Evidence
from toolkit.planning.review.reviewer import find_issues
from toolkit.plugins import Blob

FIRST_SEED = 10_000
SENTENCE = "the tide turns below the pier and every boat swings slowly round on its chain"
# Makers of good pictures that take a seed, with prompts.
PAINTERS = (
    ("night_street", "a street at night"), ("fog", "trees in fog"), ("bars_poster", "a poster"),
    ("pixel_sprite", "pixel art of a robot"), ("sandbox_picture", "a lighthouse by the sea"),
    ("sandbox_picture", "hills at dawn"),
)  # fmt: skip
NO_PICTURES: Mapping[str, Blob] = {}
SIZES = ((1200, 630), (1080, 1080), (1080, 1350), (400, 400), (1600, 400), (600, 1000))
TEXTS = (
    "rain barrels on small balconies keep herbs alive through dry weeks and save money",
    "Regentonnen auf kleinen Balkonen halten Kräuter über trockene Wochen grün und frisch",
    "des tonneaux de pluie gardent les herbes vertes même après une longue sécheresse",
    "дождевые бочки на балконах сохраняют зелень живой в сухие недели и экономят воду",
    "براميل المطر على الشرفات تحفظ الأعشاب خضراء في الأسابيع الجافة",
)


def speak(seed: int) -> Evidence:
    """Make soft or loud speech of any voice, with the background noise of a quiet room."""
    draw = np.random.default_rng(seed)
    text = " ".join(draw.choice(SENTENCE.split(), int(draw.integers(2, 60))))
    voice = f"{draw.choice(['woman', 'man'])}-{draw.integers(12)}"
    made = make(
        {
            "maker": "speech",
            "args": {
                "text": text, "voice": voice, "gain_db": float(draw.uniform(-30, 3)),
                "room_db": float(draw.uniform(-80, -60)), "lead": float(draw.uniform(0, 0.5)),
                "tail": float(draw.uniform(0, 1)), "channels": int(draw.integers(1, 3)),
            },
        }
    )  # fmt: skip
    return _build("speech.generate", {"text": text}, made)


def paint(seed: int) -> Evidence:
    """Paint a picture of a random kind, in one of three formats."""
    draw = np.random.default_rng(seed)
    size = {"width": 448, "height": 384}
    name, prompt = PAINTERS[seed % len(PAINTERS)]
    args = {"prompt": prompt} if name == "sandbox_picture" else {}
    of = {"maker": name, "args": {**size, **args, "seed": seed}}
    kind = str(draw.choice(["png", "jpeg", "webp"])) if name != "pixel_sprite" else "png"
    made = make({"maker": "as_file", "args": {"of": of, "kind": kind}})
    return _build("image.generate", {"prompt": prompt, **size}, made)


def lay_out(seed: int) -> Evidence:
    """Draw a card of any theme, size and template, with texts in one of five languages."""
    draw = np.random.default_rng(seed)
    words = TEXTS[int(draw.integers(len(TEXTS)))].split()

    def write(low: int, high: int, share: float = 1.0) -> str:
        count = int(draw.integers(low, high))
        return " ".join(draw.choice(words, count)) if draw.random() < share else ""

    width, height = SIZES[int(draw.integers(len(SIZES)))]
    fields: dict[str, object] = {
        "title": write(1, 12), "subtitle": write(2, 12, 0.6), "footer": write(1, 7, 0.5),
        "kicker": write(1, 4, 0.4), "body": write(4, 60, 0.7), "width": width, "height": height,
        "template": str(draw.choice(list(get_args(TemplateName)))),
        "theme": str(draw.choice(list(get_args(ThemeName)))),
        "bullets": [write(1, 7) for _ in range(int(draw.integers(0, 5)))],
        "format": "svg" if draw.random() < 0.15 else "png",
    }  # fmt: skip
    fields = {name: value for name, value in fields.items() if value}
    args = {"width": 640, "height": 512, "prompt": "rain", "seed": seed}
    picture = {"maker": "sandbox_picture", "args": args} if draw.random() < 0.5 else None
    made = make({"maker": "card", "args": {"fields": fields, "image": picture}})
    images = {"image": Blob(make(picture).data, "image/png")} if picture else {}
    fields |= {"image": ARTIFACT} if picture else {}
    return _build("composition.layout", fields, made, images)


def _build(
    capability_id: str,
    fields: dict[str, object],
    made: Made,
    pictures: Mapping[str, Blob] = NO_PICTURES,
) -> Evidence:
    capability = index_capabilities()[capability_id]
    output = {
        "artifact_id": ARTIFACT, "model": "rule", "voice": None,
        "characters": len(str(fields.get("text", ""))), **made.facts, "media_type": made.media_type,
    }  # fmt: skip
    output = {name: output[name] for name in capability.output_model.model_fields if name in output}
    node = PlanNode(id="made", capability=capability_id, input=fields)
    blob = Blob(made.data, made.media_type)
    return Evidence(node, capability, "completed", output, blob, None, None, pictures=pictures)


MAKERS: dict[str, Callable[[int], Evidence]] = {
    "sound": speak,
    "picture": paint,
    "card": lay_out,
    "research": facts.gather_good,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Make good artifacts and review them; the exit code is 1 if too many are blocked."""
    parser = argparse.ArgumentParser(prog="benchmarks.review_alarms")
    parser.add_argument("--kind", choices=MAKERS, action="append")
    parser.add_argument("--number", type=int, default=500, help="number of artifacts of each kind")
    args = parser.parse_args(argv)
    results = []
    for kind in args.kind or MAKERS:
        blocked = 0
        for seed in range(FIRST_SEED, FIRST_SEED + args.number):
            issues = find_issues("a task", [MAKERS[kind](seed)], ["made"], attempt=0)
            alarms = [issue for issue in issues if issue.is_blocking]
            blocked += bool(alarms)
            for issue in alarms[:1]:
                print(f"{kind} {seed}: {issue.check}: {issue.message}", file=sys.stderr)
        share = blocked / args.number
        results.append(
            report(f"review.{kind}.alarms", share, "share", floor=0, limit=0.01, of=args.number)
        )
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
