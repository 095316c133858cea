"""False alarms of the reviewer: the share of generated good artifacts that it blocks.

Run `python -m benchmarks.review_alarms`; `--number 100` is quicker, `--kind sound` measures one
kind. It uses the makers of `tests/planning/review`, with seeds that no test uses. Each figure is
the share that is blocked, and must stay below one in a hundred.
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
    """Make soft or loud, rough or clear speech with the background noise of a quiet room."""
    draw = np.random.default_rng(seed)
    seconds = float(draw.uniform(0.8, 20))
    voice = sounds.speak(seed, seconds, breath=float(draw.choice([0.02, 0.1, 0.3, 1])))
    voice = sounds.add_silence(voice * 10 ** draw.uniform(-1.5, 0), 0.2, draw.uniform(0.1, 1))
    color, level = float(draw.integers(0, 3)), 10 ** draw.uniform(-4, -3)
    room = sounds.make_noise(seed, len(voice) / sounds.RATE, color, level)
    data = sounds.encode_mp3(voice + room[: len(voice)], kbps=int(draw.choice([32, 64, 128])))
    letters = seconds * float(draw.uniform(*LETTERS_PER_S))
    text = (SENTENCE * 20)[: round(letters * 1.2)]
    claims = {"duration_ms": None, "characters": len(text), "voice": None}
    return _build("speech.generate", {"text": text}, claims, Blob(data, "audio/mpeg"))


def paint(seed: int) -> Evidence:
    """Paint a picture of a random kind, in one of three formats."""
    image = pictures.paint_good(seed, (448, 384))
    kind = "PNG" if image.mode == "RGBA" else ("PNG", "JPEG", "WEBP")[seed % 3]
    size = {"width": image.width, "height": image.height}
    blob = Blob(pictures.encode_picture(image, kind), f"image/{kind.lower()}")
    return _build("image.generate", {"prompt": pictures.name_good(seed), **size}, size, blob)


def _build(
    capability_id: str, fields: dict[str, object], claims: dict[str, object], blob: Blob
) -> Evidence:
    capability = index_capabilities()[capability_id]
    output = {
        "artifact_id": cards.ARTIFACT, "media_type": blob.media_type,
        "size_bytes": len(blob.data), "model": "rule", **claims,
    }  # fmt: skip
    node = PlanNode(id="made", capability=capability_id, input=fields)
    return Evidence(node, capability, "completed", output, blob, None, None)


MAKERS: dict[str, Callable[[int], Evidence]] = {
    "sound": speak,
    "picture": paint,
    "card": cards.draw_random_card,
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
