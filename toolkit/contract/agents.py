"""Agents: named objectives with parameters and the limits of their work."""

import re
from typing import Annotated

from pydantic import Field

from toolkit.contract.base import Record, Request, Timestamp
from toolkit.contract.plans import CapabilityName, Constraints

_PARAMETER_PATTERN = re.compile(r"\{([a-z][a-z0-9_]{0,63})\}")
AgentName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9._-]{0,127}$", examples=["card-maker"])]
AgentVersion = Annotated[str, Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z._-]{0,31}$", examples=["1"])]


class AgentCreate(Request):
    """`POST /v1/agents`: registers a version of an agent; a version never changes.

    Attributes:
        objective: desired result; each `{word}` in it is a parameter that a run's input fills in.
        constraints: limits of each run; a run may only ask for less money.
        capabilities: names of the capabilities that it may use; all by default.
    """

    name: AgentName
    version: AgentVersion = "1"
    objective: str = Field(min_length=1, max_length=10_000, pattern=r"\S")
    constraints: Constraints = Constraints()
    capabilities: list[CapabilityName] = Field(default=[], max_length=64)


class Agent(Record):
    """A registered agent; `POST /v1/runs` with `target: agent` and its name runs it.

    Attributes:
        parameters: names of the texts that a run's input must give.
    """

    id: str
    name: str
    version: str
    objective: str
    parameters: list[str] = []
    constraints: Constraints = Constraints()
    capabilities: list[str] = []
    created_at: Timestamp
    deleted: bool = False


def find_parameters(objective: str) -> list[str]:
    """Find the parameters of an objective, in the order of their first use.

    >>> find_parameters("A card about {topic} for {readers}; {topic} first")
    ['topic', 'readers']
    """
    return list(dict.fromkeys(_PARAMETER_PATTERN.findall(objective)))


def fill_parameters(objective: str, values: dict[str, str]) -> str:
    """Fill in each parameter of an objective once; a `{word}` inside a value stays.

    >>> fill_parameters("A card about {topic}", {"topic": "{tea}"})
    'A card about {tea}'
    """
    return _PARAMETER_PATTERN.sub(lambda match: values[match.group(1)], objective)
