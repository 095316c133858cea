"""Scripted answers of a simulated language model, and a plan of one text."""

from toolkit import Workflow
from toolkit.sandbox import Faults

GOOD = (
    "Tea is a drink made from the leaves of a shrub, and people in China were the first to enjoy"
    " it. Tea reached Europe by ship, and soon tea was drunk in every house."
)
GOOD_TOO = (
    "Black tea and green tea come from one plant: leaves of the first are left to wither in the"
    " air, those of the second are heated at once, which keeps the tea fresh and green."
)
WORSE = f"# About tea\n\n{GOOD}"  # a heading lowers the score, and passes
REFUSED = "I'm sorry, but I can't help with that request. Perhaps somebody else can."
ALWAYS = 100


class AnswerScript:
    """Answers of the sandbox's first language model, in turn; then it writes by itself."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def say(self, *texts: str, times: int | None = 1) -> None:
        """Answer with each text in turn."""
        self._faults.say("openai", *texts * (times or ALWAYS))

    @property
    def calls(self) -> int:
        """Number of calls to a language model."""
        return sum("completions" in call.path for call in self._faults.calls)


def build_text_plan() -> Workflow:
    """Build a plan of one text about tea."""
    flow = Workflow("A text about tea")
    flow.add("copy", "llm.generate", objective="A 30-word text about tea")
    return flow
