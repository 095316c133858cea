"""The executor of jobs, the unit of execution: from queued to an artifact or an error."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import to_json

from toolkit.contract.base import ErrorInfo, now
from toolkit.contract.errors import ErrorCode, ToolkitError, WorkError
from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.contract.money import ZERO_USD
from toolkit.engine.concurrency.pacing import yield_to_others
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.attempts import AttemptLoop
from toolkit.engine.execution.batch_place import BatchPlace, RequestParked
from toolkit.engine.execution.job_run import JobOutcome, JobRun, write_detail
from toolkit.engine.execution.node_states import make_error_info
from toolkit.engine.execution.result_cache import FIRST_LOOK_S, MAX_LOOK_S, ResultCache
from toolkit.engine.execution.shutdown import ShutdownInterrupt, ShutdownWatch
from toolkit.engine.execution.store_patience import ask_store
from toolkit.engine.job_record import AttemptRecord, JobRecord
from toolkit.engine.routing.registry import find_max_length, validate_input
from toolkit.engine.routing.router import is_servable
from toolkit.engine.services.artifacts import Artifacts, ResultNotStoredError, StoredArtifact
from toolkit.engine.transport.driver import MAX_INLINE_BYTES, FlowHooks, measure_size
from toolkit.plugins import Blob, Call, Capability, ProviderError, Result, Upstream
from toolkit.store import AccountScope, Change, LeaseLost, StoreUnavailableError
from toolkit.workers.serialization import NotSerializableError

log = logging.getLogger(__name__)


class JobExecutor:
    """The executor of jobs; it treats runs and workflow nodes alike."""

    def __init__(self, core: EngineContext, artifacts: Artifacts) -> None:
        self._core = core
        self._artifacts = artifacts
        self._attempt_loop = AttemptLoop(core)
        self._cache = ResultCache(core, artifacts)

    async def execute(self, job_run: JobRun) -> JobOutcome:
        """Execute a job until it is in a final state.

        Returns:
            the outcome, once the final state is on its way to the store.

        Raises:
            LeaseLost: another process has taken the job over; nothing more was written.
            ShutdownInterrupt: the engine is shutting down, and the job had not begun.
            RequestParked: its request is to go into a batch; nothing was written.
            asyncio.CancelledError: the job is `cancelled`, or the engine is shutting down.
        """
        with self._core.observer.watch_job(job_run):
            try:
                outcome = await self._run_with_deadline(job_run)
            except BaseException:
                job_run.release_room()
                raise
            outcome.durable.add_done_callback(job_run.release_room)
            return outcome

    async def _run_with_deadline(self, job_run: JobRun) -> JobOutcome:
        """Run a job; record it as failed at its deadline, as `cancelled` if its task is cancelled.

        A task that is cancelled because the engine shuts down leaves the job to be resumed.
        """
        deadline_s = job_run.job.options.deadline_s
        try:
            if deadline_s is None:
                return await self._run_with_slot(job_run)
            async with asyncio.timeout(deadline_s) as deadline:
                return await self._run_with_slot(job_run)
        except asyncio.CancelledError:
            if not self._core.is_draining:
                await self.cancel(job_run)
            raise
        except TimeoutError:
            if deadline_s is None or not deadline.expired():
                raise
            return self._fail(job_run, make_deadline_error(deadline_s))

    async def _run_with_slot(self, job_run: JobRun) -> JobOutcome:
        """Run a job once a concurrency slot is free for it."""
        core = self._core
        waiting = ShutdownWatch(core)
        limits = core.function_limits if job_run.capability.calls_back else core.concurrency
        if job_run.is_new and not limits.can_start(job_run.account_id):
            core.store.write(job_run.collect_changes(), lease=job_run.lease)
        async with limits.hold(job_run.account_id, job_run.lease.root_id):
            if job_run.kind in ("node", "row"):
                await yield_to_others(job_run.account_id)
                await core.store.writer.backlog.wait_for_room()
            waiting.check()
            self._mark_started(job_run)
            return await self._run_with_retries(job_run, waiting)

    async def _run_with_retries(self, job_run: JobRun, waiting: ShutdownWatch) -> JobOutcome:
        """Run a job; repeat it while retries are left and the outcome may change."""
        before: ErrorInfo | None = None
        while True:
            try:
                return await self._run_once(job_run)
            except (LeaseLost, StoreUnavailableError, ShutdownInterrupt, RequestParked):
                raise
            except Exception as error:
                info, retryable = _explain_error(error)
                # The same useless output again: a third would be paid in vain.
                is_same = info.code == ErrorCode.INVALID_OUTPUT.name and info == before
                is_lasting = job_run.stops_when_lasting and is_same
                before = info
                job_run.useless_tries += info.code == ErrorCode.INVALID_OUTPUT.name
                if is_lasting or not retryable or job_run.job.retry_count >= job_run.max_retries:
                    return self._fail(job_run, info)
            waiting.check()
            self._mark_retrying(job_run)

    async def cancel(self, job_run: JobRun) -> None:
        """Put a job into the state `cancelled` and keep the spent cost, unless it has ended."""
        if job_run.job.status in FINAL_STATUSES:
            return  # its end is already on its way to the store: states only move forward
        reason = make_error_info(ErrorCode.CANCELLED)
        await self._core.store.write(
            job_run.collect_final_changes("cancelled", reason), lease=job_run.lease, paid=True
        )

    def _mark_started(self, job_run: JobRun) -> None:
        job, started_at = job_run.job, now()
        job_run.started_monotonic = time.monotonic()
        job.status = "running"
        if job.started_at is None:
            job.started_at = started_at
            job.queue_ms = max(0, int((started_at - job.created_at).total_seconds() * 1000))
        if not job_run.capability.needs_connection:
            self._add_local_attempt(job, started_at)
        if job_run.batch is not None:  # it is written with its batch
            waited_s = (started_at - job.started_at).total_seconds()
            job_run.started_monotonic -= max(0.0, waited_s)
            return
        # Not awaited: the store writes it before this job's later writes.
        self._core.store.write(
            job_run.collect_changes("running", started_at), lease=job_run.lease, eager=False
        )

    def _mark_retrying(self, job_run: JobRun) -> None:
        """Count a node retry of a job, and record the job as running again."""
        job, started_at = job_run.job, now()
        job.retry_count += 1
        job.status_detail = "retrying"
        if not job_run.capability.needs_connection:
            self._add_local_attempt(job, started_at)
        self._core.store.write(job_run.collect_changes("running", started_at), lease=job_run.lease)

    @staticmethod
    def _add_local_attempt(job: JobRecord, started_at: datetime) -> None:
        for earlier in job.attempts:
            if earlier.status == "running":
                earlier.status, earlier.ended_at, earlier.cost_usd = "failed", started_at, ZERO_USD
        job.attempts.append(AttemptRecord(len(job.attempts) + 1, "running", started_at))

    async def _run_once(self, job_run: JobRun) -> JobOutcome:
        job_run.earlier_attempts = len(job_run.job.attempts)
        if job_run.batch is not None and job_run.batch.connection is not None:
            job_run.earlier_attempts -= 1  # the attempt is that of its batch
        call = await ask_store(self._core, self._make_call, job_run)
        if not job_run.job.options.cache or job_run.vendor_job_id is not None:
            return await self._execute_flow(job_run, call)
        if job_run.batch is not None:
            return await self._run_in_batch(job_run, call, job_run.batch)
        if job_run.capability.state is not None:
            job_run.state = ""  # from an earlier retry
            state = await self._read_state(job_run, call)
            if state is None:
                return await self._execute_flow(job_run, call)
            job_run.state, job_run.state_check = state
        key = await ask_store(self._core, self._cache.find_key, job_run, call)
        look_s = FIRST_LOOK_S
        while True:
            async with self._cache.get_lock(key):
                cached, is_waiting = await ask_store(
                    self._core, self._cache.find_or_claim, key, job_run
                )
                if cached is not None:
                    return await self._complete_from_cache(job_run, cached.job, cached.artifact)
                if not is_waiting:
                    outcome = await self._execute_flow(job_run, call)
                    # Wait until it is durable, so that the next job under this lock finds it.
                    await asyncio.shield(outcome.durable)
                    return outcome
            await asyncio.sleep(look_s)
            look_s = min(2 * look_s, MAX_LOOK_S)

    async def _run_in_batch(
        self, job_run: JobRun, call: Call[Any], place: BatchPlace
    ) -> JobOutcome:
        """Complete a job from the cache before its batch; equal jobs do not wait for each other."""
        if place.connection is None:
            key = await ask_store(self._core, self._cache.find_key, job_run, call)
            cached = await ask_store(self._core, self._cache.find, key, job_run)
            if cached is not None:
                return await self._complete_from_cache(job_run, cached.job, cached.artifact)
        return await self._execute_flow(job_run, call)

    async def _read_state(self, job_run: JobRun, call: Call[Any]) -> tuple[str, str] | None:
        """Return two digests of the state that a result depends on in addition to the input.

        The first belongs to the cache's key, the second shows whether the state changed during the
        call. Returns None if the state cannot be read, so nothing may be cached.
        """
        state = cast("Callable[[Any], tuple[str, str] | None]", job_run.capability.state)
        return await self._core.driver.run_in_thread(partial(state, call.input), job_run.account_id)

    async def _is_state_unchanged(self, job_run: JobRun, call: Call[Any]) -> bool:
        """Check that a result may be cached: the state that it depends on has not changed."""
        if job_run.capability.state is None:
            return True
        if not job_run.state:
            return False
        state = await self._read_state(job_run, call)
        return state is not None and state[1] == job_run.state_check

    async def _complete_from_cache(
        self, job_run: JobRun, earlier: JobRecord, original: StoredArtifact
    ) -> JobOutcome:
        """Complete a job with the result of an equal job; nothing is called, nothing paid."""
        job = job_run.job
        copy, insert = self._artifacts.duplicate(original, job_run.account_id, job.id)
        job.output = dict(earlier.output or {})
        if "artifact_id" in job.output:
            job.output["artifact_id"] = copy.artifact.id
        job.artifact_id = copy.artifact.id
        job.provider, job.model, job.upstream = earlier.provider, earlier.model, earlier.upstream
        job.cached, job.cached_from = True, earlier.id
        job.estimated_cost_usd = ZERO_USD
        changes = [insert, *job_run.collect_final_changes("completed")]
        return JobOutcome(copy, self._core.store.write(changes, lease=job_run.lease, eager=False))

    async def _execute_flow(self, job_run: JobRun, call: Call[Any]) -> JobOutcome:
        capability = job_run.capability
        hooks = FlowHooks(
            on_pause=partial(write_detail, self._core.store, job_run),
            on_queued=job_run.add_queue_time,
        )
        if capability.operation is not None:
            if not job_run.admitted.is_fresh:
                check_storage = self._core.quotas.check_storage  # before it is paid
                await ask_store(self._core, check_storage, job_run.account_id, 1)
            operate = partial(self._attempt_loop.run_operation, job_run)
            hooks = replace(hooks, on_operation=operate)
            self._core.driver.prepare_steps(capability.cpu_steps)
        flow = capability.flow(call)
        timeouts = self._core.get_timeouts("", capability.id)
        result = await self._core.driver.run(
            flow,
            hooks,
            timeouts=timeouts,
            account_id=job_run.account_id,
            is_large=_is_large(call),
            resources=capability.resources,
        )
        is_cacheable = job_run.job.options.cache and await self._is_state_unchanged(job_run, call)
        artifact_id = self._artifacts.new_id()
        if "artifact_id" in capability.output_model.model_fields:
            result.output["artifact_id"] = artifact_id
        _check_output(capability, result)
        blob = result.artifact or Blob(to_json(result.output), "application/json")
        entry, insert = await self._artifacts.store(
            job_run.account_id, blob, job_id=job_run.job.id, artifact_id=artifact_id
        )
        job = job_run.job
        job.output, job.artifact_id = result.output, artifact_id
        if job.provider is None:
            job.estimated_cost_usd = ZERO_USD
        changes: list[Change] = [insert, *job_run.collect_final_changes("completed")]
        if is_cacheable:
            key = self._cache.make_key(job_run, call, *job_run.provider_and_model)
            changes.append(self._cache.make_put(key, job_run))
        # A paid result is written at once; a node that cost nothing waits for a group commit.
        is_paid = job.provider is not None or job.node_id is None
        commit = self._core.store.write(changes, lease=job_run.lease, eager=is_paid, paid=is_paid)
        self._core.quotas.remove_pending_once(commit, artifact_id)
        return JobOutcome(entry, commit)

    def _fail(self, job_run: JobRun, error: ErrorInfo) -> JobOutcome:
        changes = job_run.collect_final_changes("failed", error)
        return JobOutcome(None, self._core.store.write(changes, lease=job_run.lease, paid=True))

    async def _make_call(self, job_run: JobRun) -> Call[Any]:
        """Build the argument of a capability's flow: validated input, upstream results, bytes.

        Input fields that were left out are filled from upstream results.
        """
        capability, job_input = job_run.capability, dict(job_run.job.input)
        upstream: tuple[Upstream, ...] = ()
        if (capability.accepts or capability.reads_upstream) and job_run.upstream:
            upstream = tuple(
                [
                    Upstream(node_id, entry.artifact.id, await self._artifacts.load_blob(entry))
                    for node_id, entry in job_run.upstream.items()
                ]
            )
            fill = partial(_fill_fields, capability, job_input, upstream)
            if measure_size(upstream) <= MAX_INLINE_BYTES:
                fill()
            else:
                await self._core.driver.run_in_thread(fill, job_run.account_id)
        value = job_run.value
        if value is None or upstream:
            value = validate_input(capability, job_input, frozenset(), "input")
        has_operation = True
        if capability.operation is not None and not capability.operation_required:
            options = job_run.job.options
            providers = await self._core.directory.find_providers(
                AccountScope(job_run.account_id), capability, options
            )
            has_operation = is_servable(capability, options, providers)
        return Call(
            input=value,
            blobs=await self._load_blobs(job_run, job_input),
            upstream=upstream,
            services=self._core.services,
            has_operation=has_operation,
        )

    async def _load_blobs(
        self, job_run: JobRun, job_input: Mapping[str, object]
    ) -> dict[str, Blob]:
        """Load the artifacts that the input names, by field, and note their digests."""
        blobs: dict[str, Blob] = {}
        # Upstream artifacts may not be stored yet, so they are not looked up in the store.
        entries = {entry.artifact.id: entry for entry in job_run.upstream.values()}
        for key, artifact_id in job_run.capability.list_artifacts(job_input).items():
            entry = entries.get(artifact_id) or await self._artifacts.find(
                AccountScope(job_run.account_id), artifact_id
            )
            blobs[key] = await self._artifacts.load_blob(entry)
            job_run.digests[artifact_id] = entry.artifact.sha256
        return blobs


def _is_large(call: Call[Any]) -> bool:
    """Check whether the input of a flow is so large that it is read in threads."""
    has_bytes = call.blobs or call.upstream
    return bool(has_bytes) and measure_size((call.blobs, call.upstream)) > MAX_INLINE_BYTES


def make_deadline_error(deadline_s: float) -> ErrorInfo:
    """Make the `PROVIDER_TIMEOUT` error of work that did not end within its deadline."""
    message = f"The work did not end within its deadline of {deadline_s:g} s."
    return ErrorInfo(code=ErrorCode.PROVIDER_TIMEOUT.name, message=message)


def _check_output(capability: Capability, result: Result) -> None:
    try:
        capability.output_model.model_validate(result.output)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        path = ".".join(map(str, first["loc"]))
        raise WorkError(
            ErrorCode.INVALID_OUTPUT, f"The output does not match its schema at `{path}`."
        ) from None


def _fill_fields(
    capability: Capability, job_input: dict[str, object], upstream: Sequence[Upstream]
) -> None:
    """Fill the input fields that the caller left out with matching results of upstream nodes.

    Changes `job_input` in place.
    """
    for field, binding in capability.accepts.items():
        matching = [item for item in upstream if binding.matches(item.blob.media_type)]
        if field in job_input or not matching:
            continue
        if binding.mode == "artifact":
            job_input[field] = matching[-1].artifact_id
            continue
        if binding.mode == "member":
            members = [item.find_member(field) for item in matching]
            job_input.update((field, member) for member in members if member is not None)
            continue
        longest = find_max_length(capability.input_model, field)
        if binding.mode == "artifacts":
            job_input[field] = [item.artifact_id for item in matching][:longest]
            continue
        texts = [text for item in matching if (text := item.text)]
        if texts:
            job_input[field] = "\n\n".join(texts)[:longest]


def _explain_error(error: Exception) -> tuple[ErrorInfo, bool]:
    """Return an error as the record shows it, and whether a node retry may help."""
    match error:
        case ResultNotStoredError():  # another paid result could not be stored either
            return ErrorInfo.of(error), False
        case ProviderError():
            return ErrorInfo(code=error.code.name, message=error.message), error.retryable
        case ToolkitError():
            return ErrorInfo.of(error), error.code.retryable
        case NotSerializableError():
            return ErrorInfo(code=ErrorCode.INTERNAL.name, message=str(error)), False
    # A bug in a capability's code: the message may hold anything, so only the type is shown.
    log.error("a job failed with %s", type(error).__name__, exc_info=error)
    message = f"The capability's own code failed with {type(error).__name__}."
    return ErrorInfo(code=ErrorCode.INTERNAL.name, message=message), True
