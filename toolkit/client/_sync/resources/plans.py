# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.plans`: planned objectives that have not run."""

from toolkit.client._replies import Reply
from toolkit.client._sync.handle import Handle
from toolkit.client._sync.resource import Resource
from toolkit.client._work_calls import PlanCalls
from toolkit.client._work_views import PlanView
from toolkit.contract import plans


class Plan(PlanView, Handle[plans.Plan]):
    """A plan for an objective, which has not run."""

    noun, resource, record_type = "Plan", "plans", plans.Plan


class Plans(PlanCalls[Reply[Plan]], Resource[Plan]):
    """`client.plans`: plan objectives without running them."""

    handle = Plan
