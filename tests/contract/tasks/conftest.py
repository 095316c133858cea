"""A caller whose only model of language says what it is told to say."""

import pytest

from tests.contract.tasks.scripts import AnswerScript
from toolkit import Client
from toolkit.sandbox import Faults


@pytest.fixture
def script(faults: Faults) -> AnswerScript:
    """The answers of the one language model that `writer` has connected."""
    return AnswerScript(faults)


@pytest.fixture
def writer(bare: Client) -> Client:
    """A client with one language model and nothing else."""
    bare.connections.create("openai", "environment", "OPENAI_API_KEY")
    return bare
