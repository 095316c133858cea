"""`client.plans`: planned objectives that have not run."""

from toolkit.client._async.handle import AsyncHandle
from toolkit.client._async.resource import AsyncResource
from toolkit.client._replies import AsyncReply
from toolkit.client._work_calls import PlanCalls
from toolkit.client._work_views import PlanView
from toolkit.contract import plans


class AsyncPlan(PlanView, AsyncHandle[plans.Plan]):
    """A plan for an objective, which has not run."""

    noun, resource, record_type = "Plan", "plans", plans.Plan


class AsyncPlans(PlanCalls[AsyncReply[AsyncPlan]], AsyncResource[AsyncPlan]):
    """`client.plans`: plan objectives without running them."""

    handle = AsyncPlan
