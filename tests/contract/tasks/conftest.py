"""A client whose only language model is scripted."""

import pytest

from tests.contract.tasks.scripts import AnswerScript
from toolkit import Client
from toolkit.sandbox import Faults


@pytest.fixture
def script(faults: Faults) -> AnswerScript:
    """Answers of the language model that `writer` has connected."""
    return AnswerScript(faults)


@pytest.fixture
def writer(bare: Client) -> Client:
    """A client with one language model and nothing else."""
    bare.connections.create("openai", "environment", "OPENAI_API_KEY")
    return bare
