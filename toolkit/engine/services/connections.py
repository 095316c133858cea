"""Provider connections, and the catalogue of providers."""

import asyncio
import json
import time
from collections.abc import Sequence

from toolkit.contract.base import ErrorInfo, now
from toolkit.contract.connections import (
    Connection,
    ConnectionCreate,
    ConnectionTest,
    Everyone,
)
from toolkit.contract.errors import Detail, ErrorCode, RequestError, ToolkitError
from toolkit.contract.health import Provider
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.operations.queries import MAX_TOTAL
from toolkit.contract.suggestions import ask_meant
from toolkit.engine.context import EngineContext
from toolkit.engine.request_context import RequestContext
from toolkit.engine.services.idempotency import commit_accepted
from toolkit.engine.transport.driver import NO_HOOKS
from toolkit.plugins import ProviderError, TextRequest, Vendor
from toolkit.plugins.key_redaction import redact_message
from toolkit.store import Change

MAX_LISTED_MODELS = 200  # the maximum number of a provider's models in an answer


class Connections:
    """The operations of `/v1/providers/connections`, and of `/v1/providers`."""

    def __init__(self, core: EngineContext) -> None:
        self._core = core

    async def create(
        self, context: RequestContext, request: ConnectionCreate, *, tested: bool = True
    ) -> Connection:
        """Store a pointer to a secret, and test it for free; a failure becomes a warning.

        Args:
            tested: whether to test it; False with a cassette, which holds only the calls of the
                work itself.

        Raises:
            RequestError: `INVALID_REQUEST` for a provider that is not in the catalogue; the errors
                of `share` if it is to be shared.
        """
        vendors = self._core.registry.vendors
        if request.provider not in vendors:
            suggestion = ask_meant(request.provider, vendors)
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"Connect one of {', '.join(vendors)}. {suggestion}".rstrip(),
                details=[Detail("provider", "is not in the vendor catalogue")],
            )
        connection = Connection(
            id=new_id(Prefix.CONNECTION), created_at=now(), **request.model_dump(exclude={"share"})
        )
        insert = self._core.records.connections.make_insert(
            context.account_id, connection, provider=connection.provider
        )
        size_bytes = len(str(insert.values["doc"]))
        await self._core.quotas.check_storage(context.account_id, size_bytes)
        changes: list[Change] = [insert]
        if request.share is not None:
            shares = self._core.shares
            changes += await shares.make_share_changes(
                context.account_id, connection.id, request.share
            )
            connection.shared_with = request.share
        await commit_accepted(self._core, context, changes, connection)
        timeout_s = self._core.settings.connection_test_s
        if tested and timeout_s and not self._core.is_reproducible:
            connection.warning = await self._find_error(connection, timeout_s)
        return connection

    async def _find_error(self, connection: Connection, timeout_s: float) -> ErrorInfo | None:
        """Test a new connection for at most `timeout_s`; return the error, or None if it works."""
        try:
            async with asyncio.timeout(timeout_s):
                return (await self._run_test(connection)).error
        except TimeoutError:
            return ErrorInfo(
                code=ErrorCode.PROVIDER_TIMEOUT.name,
                message=f"{connection.provider} did not answer within {timeout_s:g} s:"
                " test the connection again later.",
            )

    async def get(self, context: RequestContext, connection_id: str) -> Connection:
        """Return a connection that the account owns or that is shared with it.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        shares = self._core.shares
        return await shares.show(await shares.find(context.scope, connection_id))

    async def list(
        self, context: RequestContext, limit: int, before: str | None
    ) -> list[Connection]:
        """List a page of connections, own and shared, newest first."""
        shares = self._core.shares
        own_connections = await self._core.records.connections.list(context.scope, limit, before)
        shared_connections = [
            connection
            for connection, _ in await shares.list_shared(context.scope)
            if not before or connection.id < before
        ]
        connections = sorted(
            [*own_connections, *shared_connections],
            key=lambda connection: connection.id,
            reverse=True,
        )
        return [await shares.show(connection) for connection in connections[:limit]]

    async def count(self, context: RequestContext) -> int | None:
        """Count the connections of a list; None if there are too many."""
        own_count = await self._core.records.connections.count(context.scope)
        shared_count = len(await self._core.shares.list_shared(context.scope))
        return (
            None
            if own_count is None or own_count + shared_count > MAX_TOTAL
            else own_count + shared_count
        )

    async def test(self, context: RequestContext, connection_id: str) -> ConnectionTest:
        """Test a connection: resolve its secret, and make a free call if the vendor has one.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        connection = await self._core.shares.find(context.scope, connection_id)
        result = await self._run_test(connection)
        if connection.shared:  # the owner's models are private, and so are the suggestions
            result.models, result.next_step = [], ""
        return result

    async def _run_test(self, connection: Connection) -> ConnectionTest:
        vendor = self._core.registry.vendors[connection.provider]
        gate = self._core.gates.get_gate(connection)
        result = ConnectionTest(
            connection_id=connection.id, provider=connection.provider, resolved=False
        )
        try:
            access = await self._core.resolve_access(vendor, connection, "")
        except ToolkitError as error:
            result.error = ErrorInfo.of(error)
            gate.record_test(error.code)
            return result
        except ProviderError as fault:  # the vendor was asked to sign in
            self._note_failure(result, connection, fault)
            return result
        result.resolved = True
        if vendor.probe is None:
            return result
        timeouts = self._core.get_timeouts(vendor.id)
        start = time.monotonic()
        try:
            models = await self._core.driver.run(
                vendor.probe(access), NO_HOOKS, timeouts=timeouts, via=vendor.id
            )
            result.accepted = True
            gate.record_test(None)
            result.models = list(models or ())[:MAX_LISTED_MODELS]
            result.next_step = self._suggest_next_step(vendor, models or ())
        except ProviderError as fault:
            fault.message = redact_message(fault.message, access.key_forms)
            self._note_failure(result, connection, fault)
        result.took_ms = int((time.monotonic() - start) * 1000)
        return result

    def _note_failure(
        self, result: ConnectionTest, connection: Connection, fault: ProviderError
    ) -> None:
        """Note a vendor's failure as the result of a test; a refused secret is read anew."""
        is_refused = fault.code is ErrorCode.PROVIDER_AUTH_FAILED
        result.resolved = fault.code is not ErrorCode.SECRET_UNRESOLVED
        result.accepted = False if is_refused else None
        result.error = ErrorInfo(code=fault.code.name, message=fault.message)
        self._core.gates.get_gate(connection).record_test(fault.code)
        if is_refused:
            self._core.resolver.invalidate(connection.connection_type, connection.secret_ref)

    def _suggest_next_step(self, vendor: Vendor, model_names: Sequence[str]) -> str:
        """Suggest how to use a listed model if no configured model is listed; empty otherwise."""
        model_ids = [
            model.id for model in self._core.directory.list_models(vendor, TextRequest.kind)
        ]
        # A dated or suffixed id is another spelling of the configured name.
        if (
            vendor.is_local
            or not model_names
            or any(name.startswith(model_id) for name in model_names for model_id in model_ids)
        ):
            return ""
        return (
            f"`{model_ids[0]}` is not listed: name one that is in `toolkit.toml`,"
            f" [vendors.{vendor.id}] models = {{ text = {json.dumps(model_names[0])} }}."
        )

    async def trust(self, context: RequestContext, connection_id: str) -> Connection:
        """Allow a connection's models under budgets again although they billed more than reserved.

        Raises:
            RequestError: `NOT_FOUND`; `FORBIDDEN` for a connection only shared with the account.
        """
        connection = await self._core.shares.find_own(context.account_id, connection_id)
        connection.overbilled = []
        await self._core.directory.save_connection(connection)
        return await self._core.shares.show(connection)

    async def share(
        self, context: RequestContext, connection_id: str, accounts: Everyone | Sequence[str]
    ) -> Connection:
        """Share a connection with other accounts, whose work through it is at their own expense.

        Args:
            accounts: ids of the additional accounts that it is shared with from now on, or `all`.

        Raises:
            RequestError: `NOT_FOUND`, also for an unknown account; `FORBIDDEN` for a connection
                only shared with the account, and if the account is no operator's; `CONFLICT` for
                some accounts if it is shared with all; `INVALID_REQUEST` for the account itself.
        """
        shares = self._core.shares
        connection = await shares.find_own(context.account_id, connection_id)
        changes = await shares.make_share_changes(context.account_id, connection_id, accounts)
        await self._core.store.write(changes)
        return await shares.show(connection)

    async def unshare(
        self, context: RequestContext, connection_id: str, member_id: str | None = None
    ) -> Connection:
        """Stop sharing a connection with an account; with all, by default.

        Raises:
            RequestError: `NOT_FOUND`; `FORBIDDEN` for a connection only shared with the account;
                `CONFLICT` for a single account if it is shared with all.
        """
        shares = self._core.shares
        connection = await shares.find_own(context.account_id, connection_id)
        await self._core.store.write(await shares.make_unshare_changes(connection_id, member_id))
        return await shares.show(connection)

    async def delete(self, context: RequestContext, connection_id: str) -> Connection:
        """Delete a connection and end its shares; return its last state.

        Raises:
            RequestError: `NOT_FOUND`; `FORBIDDEN` for a connection only shared with the account.
        """
        connection = await self._core.shares.find_own(context.account_id, connection_id)
        connection.deleted = True
        update = self._core.records.connections.make_update(connection, deleted=True)
        share_changes = await self._core.shares.make_unshare_changes(connection_id)
        await self._core.store.write([update, *share_changes])
        return connection

    async def list_providers(self, context: RequestContext) -> Sequence[Provider]:
        """List every provider, its capabilities, and whether this account has connected it."""
        registry = self._core.registry
        connections = await self._core.directory.list_connections(context.scope)
        return [
            Provider(
                id=vendor.id,
                label=vendor.label,
                title=vendor.title,
                operations=sorted(operation.kind for operation in vendor.operations),
                capabilities=[
                    c.id for c in registry.list_newest() if c.operation in vendor.operations
                ],
                conventional_variable=vendor.variable,
                connected=vendor.id in connections,
                sandbox=self._core.settings.sandbox,
            )
            for vendor in sorted(registry.vendors.values(), key=lambda v: (v.label or "~", v.id))
        ]
