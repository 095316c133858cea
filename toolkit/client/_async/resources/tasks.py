"""`client.tasks`: objectives planned, run, reviewed and tried again."""

from toolkit.client._async.handle import AsyncAnnotated
from toolkit.client._async.resource import AsyncAnnotatedResource
from toolkit.client._async.resources.plans import AsyncPlan, AsyncPlans
from toolkit.client._async.resources.workflows import AsyncWorkflowRun, AsyncWorkflows
from toolkit.client._replies import AsyncReply
from toolkit.client._work_calls import TaskCalls, TaskHandleCalls
from toolkit.client._work_views import TaskView
from toolkit.contract import tasks
from toolkit.contract.errors import ErrorCode, RequestError


class AsyncTask(TaskView, AsyncAnnotated[tasks.Task], TaskHandleCalls[AsyncReply["AsyncTask"]]):
    """A task; `wait` also returns when the task is blocked, which means that a person must act."""

    noun, resource, record_type = "Task", "tasks", tasks.Task

    async def workflow(self, id: str | None = None) -> AsyncWorkflowRun:
        """Read a workflow of the task.

        Args:
            id: id of the workflow, from `workflow_ids`. Default: the last workflow.

        Raises:
            RequestError: `NOT_FOUND` while there is no workflow.
        """
        workflow_id = id or self.workflow_id
        if not workflow_id:
            raise RequestError(ErrorCode.NOT_FOUND, f"{self.id} has no workflow yet: wait for it.")
        return await AsyncWorkflows(self._http).get(workflow_id)

    async def plan(self) -> AsyncPlan:
        """Read the plan that the task follows.

        Raises:
            RequestError: `NOT_FOUND` while there is none.
        """
        if not self.plan_id:
            raise RequestError(ErrorCode.NOT_FOUND, f"{self.id} has no plan yet: wait for it.")
        return await AsyncPlans(self._http).get(self.plan_id)


class AsyncTasks(TaskCalls[AsyncReply[AsyncTask]], AsyncAnnotatedResource[AsyncTask]):
    """`client.tasks`: start, review, resume and list tasks."""

    handle = AsyncTask
