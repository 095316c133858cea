"""The reader of objectives: plain words in, what is requested out; `Planner` plans by it."""

from toolkit.planning.reading.capability_names import CapabilityNames
from toolkit.planning.reading.objective_reading import ObjectiveReading

# Passes that a benchmark may leave out, to tell what each brings.
PASS_NAMES = frozenset(
    {
        "literals",
        "instructions",
        "negations",
        "measures",
        "unavailable",
        "joins",
        "counts",
        "spelling",
    }
)


def read_objective(
    objective: str, names: CapabilityNames, *, without: frozenset[str] = frozenset()
) -> ObjectiveReading:
    """Read an objective; the same arguments always give the same reading.

    Args:
        objective: what is wanted, in a person's words.
        names: the words that capabilities claim for themselves.
        without: names of passes to leave out, for benchmarks only.
    """
    raise NotImplementedError("the passes follow")
