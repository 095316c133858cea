# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.tasks`: objectives planned, run, reviewed and tried again."""

from toolkit.client._replies import Reply
from toolkit.client._sync.handle import Annotated
from toolkit.client._sync.resource import AnnotatedResource
from toolkit.client._sync.resources.plans import Plan, Plans
from toolkit.client._sync.resources.workflows import WorkflowRun, Workflows
from toolkit.client._work_calls import TaskCalls, TaskHandleCalls
from toolkit.client._work_views import TaskView
from toolkit.contract import tasks
from toolkit.contract.errors import ErrorCode, RequestError


class Task(TaskView, Annotated[tasks.Task], TaskHandleCalls[Reply["Task"]]):
    """A task; `wait` also returns when the task is blocked, which means that a person must act."""

    noun, resource, record_type = "Task", "tasks", tasks.Task

    def workflow(self, id: str | None = None) -> WorkflowRun:
        """Read a workflow of the task.

        Args:
            id: id of the workflow, from `workflow_ids`. Default: the last workflow.

        Raises:
            RequestError: `NOT_FOUND` while there is no workflow.
        """
        workflow_id = id or self.workflow_id
        if not workflow_id:
            raise RequestError(ErrorCode.NOT_FOUND, f"{self.id} has no workflow yet: wait for it.")
        return Workflows(self._http).get(workflow_id)

    def plan(self) -> Plan:
        """Read the plan that the task follows.

        Raises:
            RequestError: `NOT_FOUND` while there is none.
        """
        if not self.plan_id:
            raise RequestError(ErrorCode.NOT_FOUND, f"{self.id} has no plan yet: wait for it.")
        return Plans(self._http).get(self.plan_id)


class Tasks(TaskCalls[Reply[Task]], AnnotatedResource[Task]):
    """`client.tasks`: start, review, resume and list tasks."""

    handle = Task
