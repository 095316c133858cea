"""One call of a vendor: its access resolved, its flow run by the driver, its reply redacted."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import httpx

from toolkit.contract.choices import Tier
from toolkit.contract.compute import Compute
from toolkit.contract.endpoints import Endpoint
from toolkit.contract.errors import ErrorCode, ToolkitError, WorkError
from toolkit.contract.events import TextDelta, ToolCallPart
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.candidate_search import ChosenCandidate
from toolkit.engine.execution.job_run import JobRun, write_detail
from toolkit.engine.execution.store_patience import ask_store
from toolkit.engine.money.call_bill import CallBill, is_billable
from toolkit.engine.routing.model_offers import find_model
from toolkit.engine.text_streams import TextStreams
from toolkit.engine.transport.cpu_executor import ignore
from toolkit.engine.transport.driver import MAX_INLINE_BYTES, FlowHooks, measure_size
from toolkit.engine.transport.redaction import StreamRedactor, redact_reply
from toolkit.engine.transport.send_check import SEND_CHECK
from toolkit.plugins import (
    Access,
    Operation,
    ProviderError,
    Reply,
    Submitted,
    TextReply,
    TextRequest,
    Vendor,
)
from toolkit.plugins.key_redaction import KeyForms, redact_message
from toolkit.plugins.pricing import BATCH_TIER
from toolkit.plugins.streaming import AnswerPiece
from toolkit.settings import Timeouts
from toolkit.store import AccountScope, Repository, StoreUnavailableError, UpdateRow

# Longer than any model's real answer; the text also goes into the run's record.
MAX_REPLY_CHARACTERS = 4 * 1024 * 1024


class ProviderCall:
    """One call of the chosen connection, for a job in progress.

    Args:
        core: the context that the engine's parts share.
        job_run: the job that the call is for.
        choice: the connection and model to call.
        bill: the bill that covers each request of the call.
    """

    def __init__(
        self, core: EngineContext, job_run: JobRun, choice: ChosenCandidate, bill: CallBill
    ) -> None:
        self._core = core
        self._job_run = job_run
        self._connection, self._model = choice.connection, choice.candidate.model or ""
        self._tier: Tier = "standard"
        if choice.candidate.tier != BATCH_TIER:
            self._tier = choice.candidate.tier
        self._vendor: Vendor = core.registry.vendors[choice.candidate.provider]
        self._bill = bill
        self._cancellation: httpx.Request | None = None
        self._check_lease = partial(ask_store, core, core.store.leases.check, job_run.lease)

    async def run(self, operation: Operation[Any]) -> Reply:
        """Have the vendor carry out an operation, and return its reply without the secret.

        Raises:
            ProviderError: the call failed, or a thing that it needs is missing.
            WorkError: `BUDGET_EXCEEDED` if a further request is not covered.
        """
        core, vendor = self._core, self._vendor
        access = await ask_store(core, self._resolve_access, operation)
        shown_answer = None
        if isinstance(operation, TextRequest) and operation.may_stream:
            is_watched = core.texts.is_wanted(self._job_run.resource_id, self._job_run.job.id)
            # Recorded and replayed calls must not change.
            if is_watched and not core.is_reproducible:
                shown_answer = _ShownAnswer(core.texts, self._job_run, access.key_forms)
                operation = replace(operation, stream=True)
        hooks = FlowHooks(
            on_submitted=self._store_submission,
            on_pause=partial(write_detail, core.store, self._job_run),
            on_queued=self._job_run.add_queue_time,
            on_request=self._permit_request,
            on_outcome=self._bill.note_outcome,
            on_piece=ignore if shown_answer is None else shown_answer.add,
        )
        try:
            reply: Reply = await core.driver.run(
                vendor.operations[type(operation)](operation, access),
                hooks,
                timeouts=core.get_timeouts(vendor.id, self._job_run.capability.id, self._tier),
                via=vendor.id,
                account_id=self._job_run.account_id,
                is_large=measure_size(operation) > MAX_INLINE_BYTES,
            )
        except ProviderError as error:
            if not core.is_reproducible:  # a replay has no secret, but a word in its place
                error.message = redact_message(error.message, access.key_forms)
            if error.code is ErrorCode.PROVIDER_AUTH_FAILED:
                error.retryable = await self._has_new_secret(access.pointed or access.secret)
            raise
        except asyncio.CancelledError:
            if self._cancellation is not None and not core.is_draining:
                with suppress(ProviderError):
                    ending = core.driver.send(self._cancellation, Timeouts(total_s=1.0), vendor.id)
                    await asyncio.shield(ending)
            raise
        else:
            if shown_answer is not None:
                shown_answer.add_rest()
        finally:
            if shown_answer is not None:
                shown_answer.end()
        if isinstance(reply, TextReply) and len(reply.text) > MAX_REPLY_CHARACTERS:
            raise ProviderError(
                ErrorCode.PROVIDER_BAD_RESPONSE,
                f"The answer of {vendor.id} is longer than {MAX_REPLY_CHARACTERS} characters.",
                retryable=False,
            )
        if measure_size(reply) <= MAX_INLINE_BYTES:
            return redact_reply(reply, access.key_forms)
        redact = partial(redact_reply, reply, access.key_forms)
        return await core.driver.run_in_thread(redact, self._job_run.account_id)

    async def _resolve_access(self, operation: Operation[Any]) -> Access:
        """Resolve the secret, and the vendor's ids of the endpoint or pod that the job names.

        Raises:
            ProviderError: a thing that the call needs is missing.
        """
        core, vendor = self._core, self._vendor
        models = core.directory.list_models(vendor, operation.kind)
        model = find_model(models, self._model)
        endpoint = pod = None
        try:
            if vendor.runs_at_named_place(model):
                options, records = self._job_run.job.options, core.records
                endpoint = await self._find_vendor_id(records.endpoints, options.endpoint_id)
                pod = await self._find_vendor_id(records.compute, options.compute_id)
            return await core.resolve_access(
                vendor,
                self._connection,
                self._model,
                endpoint=endpoint,
                pod=pod,
                resume=self._job_run.vendor_job_id,
                tier=self._tier,
            )
        except StoreUnavailableError:
            raise
        except ToolkitError as error:
            raise ProviderError(error.code, error.message, retryable=False) from None

    async def _find_vendor_id(
        self, places: Repository[Endpoint] | Repository[Compute], place_id: str | None
    ) -> str | None:
        """Find the vendor's own id of a named endpoint or pod; None if the job names none.

        Raises:
            WorkError: `NOT_FOUND` if it is not ready any more, or was never created.
        """
        if place_id is None:
            return None
        row = await places.find_row(
            AccountScope(self._job_run.account_id), place_id, "status", "vendor_id"
        )
        if row is None or row["status"] not in ("creating", "ready"):
            raise WorkError(
                ErrorCode.NOT_FOUND,
                f"The job cannot run on `{place_id}`, which is not ready any more.",
            )
        if row["vendor_id"] is None:
            raise WorkError(ErrorCode.NOT_FOUND, f"`{place_id}` was never created at its provider.")
        return str(row["vendor_id"])

    async def _store_submission(self, step: Submitted) -> None:
        """Store the vendor's id of the submitted work, to attach to it after a crash."""
        self._job_run.vendor_job_id = step.vendor_job_id
        self._cancellation = self._cancellation or step.cancel
        update = UpdateRow("jobs", self._job_run.job.id, {"vendor_job_id": step.vendor_job_id})
        await self._core.store.write([update], lease=self._job_run.lease, paid=True)

    async def _permit_request(self, request: httpx.Request) -> httpx.Response | None:
        """Reserve the cost of a request, and have the lease checked just before it is sent.

        Returns:
            the answer of a request that was part of a batch; None for one that is to be sent.
        """
        if self._job_run.batch is not None and is_billable(request):
            return self._job_run.batch.answer(request)
        if is_billable(request):
            # A write may have failed since the intent was written, or used up the room.
            await self._core.store.result_room.ensure()
        await self._bill.cover_request(request)
        # The intent is durable, but this process may have been paused since it was written, or may
        # be paused while it connects: another may have the lease by then.
        request.extensions[SEND_CHECK] = self._check_lease
        return None

    async def _has_new_secret(self, old_value: str) -> bool:
        """Check whether the pointer now leads to a secret other than the refused secret.

        False if the secret cannot be resolved.
        """
        connection = self._connection
        self._core.resolver.invalidate(connection.connection_type, connection.secret_ref)
        try:
            return await self._core.resolve_secret(connection) != old_value
        except ToolkitError:
            return False


class _ShownAnswer:
    """The streamed answer of one call, with the vendor's key removed, for watchers of its work.

    Args:
        texts: the streams that show the answer.
        job_run: the job whose newest attempt writes the answer.
        key_forms: the forms of the call's key, which a vendor may echo, even in two halves.
    """

    def __init__(self, texts: TextStreams, job_run: JobRun, key_forms: KeyForms) -> None:
        self._texts = texts
        self._job = job_run.job
        self._resources = tuple({job_run.resource_id, job_run.job.id})
        self._attempt = job_run.job.attempts[-1].n
        self._key_forms = key_forms
        self._parts: dict[tuple[str, int], tuple[StreamRedactor, TextDelta]] = {}

    def add(self, piece: AnswerPiece) -> None:
        """Show the next piece, except an end that may be the beginning of the key."""
        part = piece.kind, piece.index
        if part not in self._parts:
            redactor = StreamRedactor(self._key_forms, is_json=piece.kind == "tool_call")
            self._parts[part] = redactor, self._begin_part(piece)
        redactor, begun = self._parts[part]
        self._show(begun, redactor.add(piece.text))

    def add_rest(self) -> None:
        """Show the end of each part, which was held back as a possible part of a secret."""
        for redactor, begun in self._parts.values():
            self._show(begun, redactor.finish())

    def _begin_part(self, piece: AnswerPiece) -> TextDelta:
        delta = TextDelta(
            resource_id="",
            job_id=self._job.id,
            node_id=self._job.node_id,
            attempt=self._attempt,
            kind=piece.kind,
            text="",
        )
        if piece.kind == "tool_call":
            call = redact_reply(piece, self._key_forms)
            delta.tool_call = ToolCallPart(index=call.index, id=call.id, name=call.name)
            self._texts.add(*self._resources, delta=delta)  # the name, before any arguments
        return delta

    def _show(self, begun: TextDelta, text: str) -> None:
        if text:
            delta = begun.model_copy(update={"text": text})
            self._texts.add(*self._resources, delta=delta)

    def end(self) -> None:
        """Stop showing the answer, complete or not."""
        self._texts.end(*self._resources, job_id=self._job.id)
