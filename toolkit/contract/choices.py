"""Closed sets of words, for the wire's models and the options of commands.

They need no pydantic, so commands can use them and still start quickly.
"""

from typing import Literal

ConnectionType = Literal["environment", "aws_secrets_manager"]
Decision = Literal["pass", "retry", "fail"]
OptimizeFor = Literal["cost", "latency", "quality", "balanced"]
PlannerChoice = Literal["rules", "auto", "llm"]
ReviewMode = Literal["checks", "auto", "judge"]
RunTarget = Literal["capability", "agent"]
Scope = Literal["read", "write", "admin", "work"]
Tier = Literal["standard", "flex"]
# A tier in which a model may be asked: one that a request names, or that of batches.
OfferedTier = Literal["standard", "flex", "batch"]
UsageGroup = Literal["day", "capability", "provider", "connection", "agent", "key", "account"]
When = Literal["now", "batch"]
