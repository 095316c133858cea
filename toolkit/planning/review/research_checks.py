"""Checks of what research found; none yet beyond those of every node."""

from toolkit.planning.review.evidence import NodeCheck

RESEARCH_CHECKS: tuple[NodeCheck, ...] = ()
