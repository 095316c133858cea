"""False alarms of the reviewer: how many good artifacts, made by rule, it would not let pass.

Run `python -m benchmarks.review_alarms`; `--number 100` is quicker, `--kind sound` tries one kind.
The makers are those of `tests/planning/review`, with seeds that no test has. Each figure is the
share that is blocked, and has to stay below one in a hundred.
"""

import argparse
import sys
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks._report import report
from benchmarks.review import index_capabilities
from tests.planning.review import cards, facts, pictures, sounds
from toolkit.contract.plans import PlanNode
from toolkit.planning.review.evidence import Evidence
from toolkit.planning.review.reviewer import find_issues
from toolkit.plugins import Blob

FIRST_SEED = 10_000
LETTERS_PER_S = (9.0, 14.0)  # of unhurried speech
SENTENCE = "the tide turns below the pier and every boat swings slowly round on its chain "


def speak(seed: int) -> Evidence:
    """Speak as soft or loud, rough or clear, in rooms as quiet as recordings are."""
    draw = np.random.default_rng(seed)
    seconds = float(draw.uniform(0.8, 20))
    voice = sounds.speak(seed, seconds, breath=float(draw.choice([0.02, 0.1, 0.3, 1])))
    voice = sounds.add_silence(voice * 10 ** draw.uniform(-1.5, 0), 0.2, draw.uniform(0.1, 1))
    color, level = float(draw.integers(0, 3)), 10 ** draw.uniform(-4, -3)
    room = sounds.make_noise(seed, len(voice) / sounds.RATE, color, level)
    data = sounds.encode_mp3(voice + room[: len(voice)], kbps=int(draw.choice([32, 64, 128])))
    letters = seconds * float(draw.uniform(*LETTERS_PER_S))
    text = (SENTENCE * 20)[: round(letters * 1.2)]
    told = {"duration_ms": None, "characters": len(text), "voice": None}
    return _build("speech.generate", {"text": text}, told, Blob(data, "audio/mpeg"))


def paint(seed: int) -> Evidence:
    """Paint one of all kinds of pictures, in one of three formats."""
    image = pictures.paint_good(seed, (448, 384))
    kind = "PNG" if image.mode == "RGBA" else ("PNG", "JPEG", "WEBP")[seed % 3]
    size = {"width": image.width, "height": image.height}
    blob = Blob(pictures.encode_picture(image, kind), f"image/{kind.lower()}")
    return _build("image.generate", {"prompt": pictures.name_good(seed), **size}, size, blob)


def _build(
    capability_id: str, given: dict[str, object], told: dict[str, object], blob: Blob
) -> Evidence:
    capability = index_capabilities()[capability_id]
    output = {
        "artifact_id": cards.ARTIFACT, "media_type": blob.media_type,
        "size_bytes": len(blob.data), "model": "rule", **told,
    }  # fmt: skip
    node = PlanNode(id="made", capability=capability_id, input=given)
    return Evidence(node, capability, "completed", output, blob, None, None)


MAKERS: dict[str, Callable[[int], Evidence]] = {
    "sound": speak,
    "picture": paint,
    "card": cards.draw_random_card,
    "research": facts.gather_good,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Make good artifacts and review them; exit code 1 if more are blocked than may be."""
    parser = argparse.ArgumentParser(prog="benchmarks.review_alarms")
    parser.add_argument("--kind", choices=MAKERS, action="append")
    parser.add_argument("--number", type=int, default=500, help="of each kind")
    args = parser.parse_args(argv)
    kept = []
    for kind in args.kind or MAKERS:
        blocked = 0
        for seed in range(FIRST_SEED, FIRST_SEED + args.number):
            found = find_issues("a task", [MAKERS[kind](seed)], ["made"], attempt=0)
            alarms = [issue for issue in found if issue.is_blocking]
            blocked += bool(alarms)
            for issue in alarms[:1]:
                print(f"{kind} {seed}: {issue.check}: {issue.message}", file=sys.stderr)
        share = blocked / args.number
        kept.append(
            report(f"review.{kind}.alarms", share, "share", floor=0, limit=0.01, of=args.number)
        )
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
