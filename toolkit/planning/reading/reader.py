"""The reader of objectives: plain words in, what is requested out; the planner plans by it."""

from toolkit.planning.reading.assembly import assemble_reading
from toolkit.planning.reading.capability_names import CapabilityNames
from toolkit.planning.reading.objective_reading import ObjectiveReading
from toolkit.planning.reading.requests.chunk_finder import ChunkFinder
from toolkit.planning.reading.requests.fragment_finder import FragmentFinder
from toolkit.planning.reading.requests.sources import find_addresses
from toolkit.planning.reading.spans.enumerators import cut_enumerators
from toolkit.planning.reading.spans.instructions import cut_instructions
from toolkit.planning.reading.spans.lists import find_lists
from toolkit.planning.reading.spans.literals import find_artifacts, find_literals
from toolkit.planning.reading.spans.measures import find_measures
from toolkit.planning.reading.spans.scan import Scan
from toolkit.planning.reading.spans.unspaced_lists import find_unspaced_lists
from toolkit.planning.reading.spans.value_lists import find_values
from toolkit.planning.reading.words.language import detect_language
from toolkit.planning.reading.words.lexicon import load_lexicon
from toolkit.planning.reading.words.tokens import WITHOUT_SPACES

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
        "frames",
        "fragments",
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

    >>> reading = read_objective("A haiku about fog, read aloud", CapabilityNames())
    >>> [(one.kind, one.topic, one.inputs) for one in reading.requests]
    [('text', 'fog', ()), ('speech', 'fog', (0,))]
    """
    lexicon = load_lexicon(detect_language(objective))
    scan = Scan(objective, lexicon, names, mends="spelling" not in without)
    artifacts = find_artifacts(scan)
    literals = [] if "literals" in without else find_literals(scan)
    cut_enumerators(scan)
    if "instructions" not in without:
        cut_instructions(scan)
    measures = [] if "measures" in without else find_measures(scan)
    spaced = lexicon.code not in WITHOUT_SPACES
    find_items = find_lists if spaced else find_unspaced_lists
    lists = [] if "counts" in without else [*find_values(scan), *find_items(scan)]
    addresses = find_addresses(scan)
    make_finder = FragmentFinder if spaced else ChunkFinder
    finder = make_finder(scan, without)
    finder.find()
    return assemble_reading(scan, finder, literals, artifacts, measures, lists, addresses, without)
