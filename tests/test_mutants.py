"""The planted bugs of `scripts/mutants.py` can be planted; running them takes half an hour."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))
from mutants import ROOT, read_mutants

MUTANTS = read_mutants()


def test_mutants_match_the_code() -> None:
    """Given the list, then each text occurs once and is changed, and its tests exist."""
    assert len(MUTANTS) >= 60
    for mutant in MUTANTS:
        text = (ROOT / mutant.file).read_text(encoding="utf-8")
        assert text.count(mutant.old) == 1, mutant.name
        assert mutant.new != mutant.old, mutant.name
        paths = [test.partition("::")[0] for test in mutant.tests if test.startswith("tests/")]
        assert paths, mutant.name
        assert all((ROOT / path).exists() for path in paths), mutant.name
