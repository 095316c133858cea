"""Answers that a simulated language model gives in turn, and plans of one or two texts."""

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
WORSE = f"# About tea\n\n{GOOD}"  # a heading is worth a remark, and no reason to refuse it
REFUSED = "I'm sorry, but I can't help with that request. Perhaps somebody else can."
ALWAYS = 100


class AnswerScript:
    """What the sandbox's first language model answers, in turn; then it writes for itself."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def say(self, *texts: str, times: int | None = 1) -> None:
        """Answer with each text in turn."""
        self._faults.say("openai", *texts * (times or ALWAYS))

    @property
    def calls(self) -> int:
        """How many times a model was asked."""
        return sum("completions" in call.path for call in self._faults.calls)


def plan_text(words: int = 30) -> Workflow:
    """One text about tea."""
    flow = Workflow("A text about tea")
    flow.add("copy", "llm.generate", objective=f"A {words}-word text about tea")
    return flow
