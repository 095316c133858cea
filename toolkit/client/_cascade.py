"""Cascades of `client.map`: the choice of models, the comparison of labels, and the table."""

import hashlib
import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from toolkit.client._agreement import Decision, choose_sample_size, choose_threshold, draw_sample
from toolkit.client._row_results import EMPTY_CELL, NOT_BEGUN, STOPPED, RowResult
from toolkit.contract.base import to_canonical_json
from toolkit.contract.jobs import Candidate
from toolkit.contract.money import format_usd
from toolkit.contract.run_options import RunOptions
from toolkit.contract.short_tracebacks import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

QUALITIES: Final[dict[str, int]] = {"economy": 1, "standard": 2, "premium": 3}
# Temperatures of further answers of a cheap model without log-probabilities. They differ, because
# equal jobs have the same result.
_TEMPERATURES: Final = (1.0, 0.9, 0.8)
FURTHER_ANSWERS: Final = 2


def check_cascade(
    cascade: Sequence[str], agreement: float, options: RunOptions, *, is_table: bool
) -> None:
    """Reject a cascade that is no pair, a target outside of 0 to 1, and a pinned provider.

    Args:
        is_table: whether the rows are here, and not in a file or an artifact.

    Raises:
        TypeError: for any of them.
    """
    if isinstance(cascade, str) or len(cascade) != 2 or cascade[0] == cascade[1]:
        raise ArgumentError(
            "cascade is two different models, the cheap one first, such as"
            f' ("economy", "premium") or ("openai/gpt-6-luna", "anthropic"), not {cascade!r}'
        )
    if not 0 < agreement < 1:
        raise ArgumentError(f"agreement is a share between 0 and 1, such as 0.95, not {agreement}")
    if not is_table:
        raise ArgumentError("a cascade needs a table, not a file or an artifact: read it first")
    if options.get("provider") is not None:
        raise ArgumentError("cascade chooses the provider: leave out options['provider']")


def pin_model(model: str, options: RunOptions) -> RunOptions:
    """Make the options of rows that a model answers; a tier considers all models."""
    if model in QUALITIES:
        return {**options, "optimize_for": "cost"}
    return {**options, "provider": model, "only": None, "ignore": None, "optimize_for": None}


def choose_model(member: str, candidates: Sequence[Candidate]) -> tuple[float, str] | None:
    """Choose the model of a member: a named model, or the cheapest connected model of a tier.

    Neither health nor latency counts, so that a second call chooses the same model.

    Returns:
        the estimated cost of a row in US dollars, infinite if unknown, and the model as
        `provider/model`; None if no candidate can serve the request.
    """
    costs = [
        (
            math.inf if candidate.estimated_cost_usd is None else candidate.estimated_cost_usd,
            member if member not in QUALITIES else f"{candidate.provider}/{candidate.model}",
        )
        for candidate in candidates
        if candidate.allowed and candidate.connected
        if member not in QUALITIES or candidate.quality == QUALITIES[member]
    ]
    return min(costs, default=None)


def list_further_fields(fields: Mapping[str, object]) -> list[dict[str, object]]:
    """List the inputs of further answers of the cheap model, each with its own temperature."""
    values = [value for value in _TEMPERATURES if value != fields.get("temperature")]
    unseeded = {name: value for name, value in fields.items() if name != "seed"}
    return [{**unseeded, "temperature": value} for value in values[:FURTHER_ANSWERS]]


def normalize_label(value: object) -> object:
    """Return an answer in the form in which labels are compared: objects field by field.

    Texts are compared without case, outer punctuation, multiple spaces or forms of letters (NFKC).

    >>> normalize_label({"label": " Wet. ", "n": 2})
    {'label': 'wet', 'n': 2}
    """
    if isinstance(value, str):
        words = " ".join(unicodedata.normalize("NFKC", value).casefold().split())
        return words.strip(" .,;:!?\"'") or words
    if isinstance(value, Mapping):
        return {name: normalize_label(part) for name, part in value.items()}
    return [normalize_label(part) for part in value] if isinstance(value, list) else value


def have_same_label(a: RowResult, b: RowResult) -> bool:
    """Check whether two answers agree; a row without an answer agrees with none."""
    return a.value is not None and b.value is not None and _read_label(a) == _read_label(b)


def _read_label(result: RowResult) -> object:
    value = cast("Any", result.value)
    if not isinstance(value, dict):
        return normalize_label(value.model_dump(mode="json"))
    return normalize_label(value["text"] if value.get("json") is None else value["json"])


class CascadeRows:
    """The rows of a cascade, with the answers of both models.

    Args:
        cells: cells of each row.
        answers: answer of the cheap model to each row, and further answers to each row, unless it
            reports confidences.
        target: least share of rows that agree.

    Attributes:
        sample: positions of the rows that both models answer, which follow from the cells alone.
        decision: the rows that the cheap model may answer, once the sample is complete.
    """

    def __init__(
        self,
        cells: Sequence[Mapping[str, object]],
        answers: Sequence[Sequence[RowResult]],
        target: float,
    ) -> None:
        self._keys = [to_canonical_json(dict(row)) for row in cells]
        self._answers, self._target = answers, target
        self._filled = [n for n, row in enumerate(answers[0]) if row.reason != EMPTY_CELL]
        self._confidences = {position: self._find_confidence(position) for position in self._filled}
        seed = int.from_bytes(hashlib.sha256("\n".join(self._keys).encode()).digest()[:8])
        size = choose_sample_size(len(self._filled), target)
        self._drawn, self._tie_ranks = draw_sample(len(self._filled), size, seed)
        self.sample = [self._filled[n] for n in self._drawn]
        self._dear: dict[str, RowResult] = {}  # equal rows have the same answer
        self.decision: Decision | None = None
        self._kept: set[int] = set()

    def _find_confidence(self, position: int) -> float:
        cheap, *further = (answers[position] for answers in self._answers)
        if cheap.value is not None and further:
            return sum(have_same_label(cheap, answer) for answer in further) / len(further)
        return -math.inf if cheap.value is None or cheap.confidence is None else cheap.confidence

    def add(self, positions: Sequence[int], answers: Sequence[RowResult]) -> None:
        """Add answers of the dear model."""
        for position, answer in zip(positions, answers, strict=True):
            self._dear.setdefault(self._keys[position], answer)

    def decide(self) -> list[int]:
        """Choose the threshold; return the positions that the dear model has yet to answer."""
        cheap = self._answers[0]
        same = [have_same_label(cheap[n], self._dear[self._keys[n]]) for n in self.sample]
        confidences = list(self._confidences.values())
        self.decision = choose_threshold(
            confidences, self._drawn, same, self._tie_ranks, self._target
        )
        kept = zip(self._filled, self.decision.is_kept, strict=True)
        self._kept = {position for position, is_kept in kept if is_kept}
        known = self._dear.keys()
        return [n for n in self._filled if n not in self._kept and self._keys[n] not in known]

    def list_results(self, stop: RowResult | None) -> list[RowResult]:
        """List the answer of each row: that of the dear model if it has answered.

        Args:
            stop: the first row that was not begun, which explains why an answer is missing.
        """
        paid: set[str] = set()  # rows whose dear answer is in the cost of an equal row
        results = []
        for position, key in enumerate(self._keys):
            parts = [answers[position] for answers in self._answers]
            cheap, result = parts[0], self._dear.get(key)
            if result is not None:
                parts.append(replace(result, cost_usd=0.0) if key in paid else result)
                paid.add(key)
            elif position in self._kept or cheap.reason == EMPTY_CELL:
                result = cheap
            else:
                stop = stop or RowResult(NOT_BEGUN, reason=STOPPED)
                result = RowResult(NOT_BEGUN, error=stop.error, reason=stop.reason)
            begun = [part for part in parts if part.status != NOT_BEGUN]
            costs = [part.cost_usd for part in begun if part.value is not None or part.cost_usd]
            confidence = self._confidences.get(position, -math.inf)
            results.append(
                replace(
                    result,
                    cost_usd=_add_costs(costs),
                    cached=bool(begun) and all(part.cached for part in begun),
                    confidence=None if confidence == -math.inf else confidence,
                )
            )
        return results

    def add_columns(self, frame: "pd.DataFrame") -> None:
        """Add columns that tell which rows were escalated, and which were sampled."""
        import pandas as pd

        columns = {"escalated": set(self._filled) - self._kept, "sampled": set(self.sample)}
        for name, marked in columns.items():
            values = [position in marked for position in range(len(self._keys))]
            frame[f"job_{name}" if name in frame else name] = pd.array(values, dtype="boolean")

    def summarize(self) -> dict[str, Any]:
        """Summarize the cascade: the agreement with its limits, the threshold, counts and costs."""
        decision = self.decision
        dear = [row for n in self.sample if (row := self._dear.get(self._keys[n])) and row.value]
        sample_usd = _add_costs([row.cost_usd for row in dear]) if dear else None
        results = [row for row in self.list_results(None) if row.status != NOT_BEGUN]
        return {
            "target": self._target,
            "agreement": decision and decision.agreement,
            "low": decision and decision.low,
            "high": decision and decision.high,
            "threshold": decision and decision.threshold,
            "rows": len(self._filled),
            "escalated": len(self._filled) - len(self._kept),
            "sampled": len(self.sample),
            "cost_usd": _add_costs([row.cost_usd for row in results]),
            "alone_usd": sample_usd and sample_usd / len(dear) * len(self._filled),
        }


def _add_costs(costs: Sequence[float | None]) -> float | None:
    """Add costs in US dollars; an unknown cost makes the sum unknown."""
    known = [cost for cost in costs if cost is not None]
    return math.fsum(known) if len(known) == len(costs) else None


def describe_summary(summary: Mapping[str, Any]) -> str:
    """Describe the result of a cascade in a line.

    >>> describe_summary({"agreement": None, "sampled": 51})
    'No threshold: the sample of 51 rows is incomplete, so no answer of the cheap model is used.'
    """
    if summary["agreement"] is None:
        return (
            f"No threshold: the sample of {summary['sampled']} rows is incomplete, so no answer"
            " of the cheap model is used."
        )
    threshold = summary["threshold"]
    below = "" if threshold is None else f" below a confidence of {threshold:.3g}"
    paid, alone = (
        "an unknown cost" if usd is None else format_usd(float(f"{usd:.2g}"))
        for usd in (summary["cost_usd"], summary["alone_usd"])
    )
    return (
        "{agreement:.1%} agree with {models[1]} (from {low:.1%} to {high:.1%}); {escalated} of"
        " {rows} rows were escalated{below}, {sampled} were sampled; {paid} instead of about"
        " {alone}"
    ).format(**summary, below=below, paid=paid, alone=alone)
