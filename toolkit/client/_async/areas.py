"""The `/v1` areas as attributes of the client: what can be created, read and listed in each."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Generic, TypeVar

from toolkit.client import _wire
from toolkit.client._async import handles
from toolkit.client._async.http import AsyncHttp
from toolkit.client._builder import Workflow
from toolkit.client._collections import Collection, UsageLines
from toolkit.client._drawn import LineageView
from toolkit.client._shown import BillingView, ConnectionTestView, Discovered, Shown, UsageView
from toolkit.contract.account import Account, AccountCreated, ApiKey, KeyCreated
from toolkit.contract.artifacts import Lineage
from toolkit.contract.billing import Billing
from toolkit.contract.catalog import CatalogModel, Gpu
from toolkit.contract.connections import ConnectionTest
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.events import Event
from toolkit.contract.health import Provider
from toolkit.contract.usage import UsageLine

H = TypeVar("H", bound=handles.AsyncHandle[Any])
MOST_MET = 500  # ids to complete, of each area


class AsyncArea(Generic[H]):
    """An area whose resources can be read and listed."""

    handle: type[H]

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http
        self._met: dict[str, None] = {}

    def _made(self, record: Any) -> H:
        made = self.handle(self._http, self.handle.model.model_validate(record))
        self._met[made.id] = None
        if len(self._met) > MOST_MET:
            del self._met[next(iter(self._met))]
        return made

    async def __getitem__(self, id: str) -> H:  # noqa: A002 - the contract's word
        return await self.get(id)

    def _ipython_key_completions_(self) -> list[str]:
        """The ids met so far, newest last: completing asks nobody."""
        return list(self._met)

    async def _posted(self, body: Mapping[str, object]) -> H:
        envelope = await self._http.call("POST", f"/{self.handle.area}", json=body)
        return self._made(envelope["data"])

    async def get(self, id: str) -> H:  # noqa: A002 - the contract's word
        """Read one.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        return self._made((await self._http.call("GET", f"/{self.handle.area}/{id}"))["data"])

    async def list(self, limit: int = 50, cursor: str | None = None) -> Collection[H]:
        """A page of them, newest first; its `next_cursor` leads to the next."""
        params = _wire.page(limit, cursor)
        found = (await self._http.call("GET", f"/{self.handle.area}", params=params))["data"]
        items = [self._made(item) for item in found["items"]]
        return Collection(items, self.handle.area, found["next_cursor"])

    async def iterate(self, page: int = 50) -> AsyncIterator[H]:
        """All of them, newest first; a page is read when the one before is used up.

        Iterating over the area itself does the same.

        Args:
            page: how many are read at once, 1 to 200.
        """
        found = await self.list(page)
        while True:
            for item in found:
                yield item
            if found.next_cursor is None:
                return
            found = await self.list(page, found.next_cursor)

    def __aiter__(self) -> AsyncIterator[H]:
        return self.iterate()


class AsyncFollowed(AsyncArea[H]):
    """An area of work that tells events and can be cancelled."""

    async def events(self, id: str, after: int = 0, wait_s: int = 0) -> list[Event]:  # noqa: A002
        """The events of one, numbered above `after`."""
        envelope = await self._http.call(
            "GET",
            f"/{self.handle.area}/{id}/events",
            params={"after": after, "wait": wait_s},
            timeout_s=wait_s + 30.0,
        )
        return [Event.model_validate(item) for item in envelope["data"]["items"]]

    async def cancel(self, id: str) -> H:  # noqa: A002
        """End one; what has ended stays as it is."""
        return self._made(
            (await self._http.call("POST", f"/{self.handle.area}/{id}/cancel"))["data"]
        )


class AsyncCapabilities(AsyncArea[handles.AsyncCapability]):
    """`client.capabilities`."""

    handle = handles.AsyncCapability

    async def list(
        self,
        limit: int = 50,  # noqa: ARG002 - there is one page of them
        cursor: str | None = None,  # noqa: ARG002
    ) -> Collection[handles.AsyncCapability]:
        """Every capability, in registry order and in one page."""
        found = (await self._http.call("GET", "/capabilities"))["data"]
        return Collection([self._made(item) for item in found["items"]], "capabilities")


class AsyncConnections(AsyncArea[handles.AsyncConnection]):
    """`client.connections`."""

    handle = handles.AsyncConnection

    async def create(
        self, provider: str, connection_type: str, secret_ref: str
    ) -> handles.AsyncConnection:
        """Register a pointer to a secret: the *name* of a variable, never its value."""
        body = {
            "provider": provider,
            "connection_type": connection_type,
            "secret_ref": secret_ref,
        }
        return await self._posted(body)

    async def discover(self) -> Collection[Shown[Discovered]]:
        """Which vendors' conventional variables are set in this process, and which are connected.

        Connect those you want by `connect`. A service elsewhere reads its own environment, so what
        is set here helps only where both are the same process.
        """
        found = (await self._http.call("GET", "/providers"))["data"]["items"]
        rows = [_wire.discovered(Provider.model_validate(item)) for item in found]
        return Collection([Shown(row, "Variable") for row in rows], "conventional variables")

    async def connect(self, *providers: str) -> Collection[handles.AsyncConnection]:
        """Register the conventional variables of vendors, such as `connect("openai")`.

        Raises:
            RequestError: `INVALID_REQUEST` for a vendor that is not in the catalogue.
        """
        known = {row.record.provider: row.record.variable for row in await self.discover()}
        for provider in providers:
            if provider not in known:
                raise RequestError(ErrorCode.INVALID_REQUEST, f"Connect one of {', '.join(known)}.")
        made = [await self.create(name, "environment", known[name]) for name in providers]
        return Collection(made, "connections")

    async def test(self, id: str) -> ConnectionTestView:  # noqa: A002
        """Whether the pointer resolves and the vendor takes the key; costs nothing."""
        path = f"/providers/connections/{id}/test"
        return ConnectionTestView(
            _wire.data_of(await self._http.call("POST", path), ConnectionTest)
        )

    async def delete(self, id: str) -> handles.AsyncConnection:  # noqa: A002
        """Forget a connection."""
        return self._made((await self._http.call("DELETE", f"/providers/connections/{id}"))["data"])


class AsyncProviders:
    """`client.providers`: the vendor catalogue."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def list(self) -> Collection[Shown[Provider]]:
        """Every vendor, and whether it is connected."""
        found = (await self._http.call("GET", "/providers"))["data"]["items"]
        shown = [Shown(Provider.model_validate(item), "Provider") for item in found]
        return Collection(shown, "providers")


class AsyncRuns(AsyncFollowed[handles.AsyncRun]):
    """`client.runs`."""

    handle = handles.AsyncRun

    async def create(
        self,
        name: str,
        input: Mapping[str, object],  # noqa: A002 - the contract's word
        *,
        version: str | None = None,
        target: str = "capability",
        optimize_for: str | None = None,
        provider: str | None = None,
        endpoint_id: str | None = None,
        compute_id: str | None = None,
        max_cost_usd: float | None = None,
        deadline_s: float | None = None,
        cache: bool | None = None,
        fallback_on_rejection: bool = False,
    ) -> handles.AsyncRun:
        """Ask for one capability to be executed; it is under way when this returns.

        Args:
            name: a capability, or `name@version`.
            input: its input.
            version: the version, where it is not in the name.
            target: `agent` for a run of an agent of that name.
            optimize_for: `cost`, `latency`, `quality` or `balanced`.
            provider: a connection id to pin.
            endpoint_id: a serverless endpoint, for images.
            compute_id: a GPU pod to use instead.
            max_cost_usd: refuse, or stop, rather than spend more.
            deadline_s: fail rather than take longer, in seconds.
            cache: use the result of an equal job again, and keep this one's; the client's own
                choice by default.
            fallback_on_rejection: try the next vendor even with an input that one refused.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST`, `NOT_FOUND` and others.
        """
        options = _wire.without_none(
            optimize_for=optimize_for,
            provider=provider,
            endpoint_id=endpoint_id,
            compute_id=compute_id,
            max_cost_usd=max_cost_usd,
            deadline_s=deadline_s,
            cache=self._http.cache_for(target) if cache is None else cache,
            fallback_on_rejection=fallback_on_rejection or None,
        )
        return await self._posted(_wire.run_body(name, input, version, options, target))


class AsyncJobs(AsyncFollowed[handles.AsyncJob]):
    """`client.jobs`."""

    handle = handles.AsyncJob

    async def create(
        self,
        type: str,  # noqa: A002 - the contract's word
        compute_id: str,
        input: Mapping[str, object],  # noqa: A002
        *,
        max_cost_usd: float | None = None,
    ) -> handles.AsyncJob:
        """Have a job done on a compute of one's own; it is under way when this returns.

        Args:
            type: what to do, such as `image` (`job.type` of a capability).
            compute_id: the compute to do it on.
            input: the capability's input.
            max_cost_usd: refuse, or stop, rather than spend more.

        Raises:
            RequestError: `INVALID_REQUEST`, `NOT_FOUND` and others.
        """
        options = _wire.without_none(max_cost_usd=max_cost_usd)
        body = {"type": type, "compute_id": compute_id, "input": dict(input), "options": options}
        return await self._posted(body)


class AsyncWorkflows(AsyncFollowed[handles.AsyncWorkflowRun]):
    """`client.workflows`."""

    handle = handles.AsyncWorkflowRun

    async def submit(self, workflow: Workflow) -> handles.AsyncWorkflowRun:
        """Submit a workflow; it is under way when this returns.

        Raises:
            RequestError: `INVALID_WORKFLOW`, `CREDENTIALS_MISSING`, `INVALID_REQUEST`, `NOT_FOUND`.
        """
        return await self.create(workflow.to_dict())

    async def create(self, body: Mapping[str, object]) -> handles.AsyncWorkflowRun:
        """Submit a workflow given as the contract's JSON."""
        chosen = _wire.without_none(cache=self._http.cache)
        given = body.get("options")
        options = {**chosen, **(given if isinstance(given, Mapping) else {})}
        return await self._posted({**body, **({"options": options} if options else {})})

    async def retry(self, id: str) -> handles.AsyncWorkflowRun:  # noqa: A002
        """Run one that did not complete again, from its failed nodes on.

        Raises:
            RequestError: `CONFLICT` unless it has failed or was cancelled.
        """
        return self._made((await self._http.call("POST", f"/workflows/{id}/retry"))["data"])

    async def fork(
        self,
        id: str,  # noqa: A002
        from_node: str,
        overrides: Mapping[str, Mapping[str, object]] | None = None,
    ) -> handles.AsyncWorkflowRun:
        """Make a new one that runs a node again and what depends on it, and keeps the rest.

        Args:
            id: the workflow whose results are kept.
            from_node: the node to run again.
            overrides: input members that differ, by the id of a node that runs again.

        Raises:
            RequestError: `INVALID_REQUEST` for a node that does not run again.
        """
        body = {"from_node": from_node, "overrides": dict(overrides or {})}
        return self._made(
            (await self._http.call("POST", f"/workflows/{id}/fork", json=body))["data"]
        )


class AsyncTasks(AsyncFollowed[handles.AsyncTask]):
    """`client.tasks`."""

    handle = handles.AsyncTask

    async def create(
        self,
        objective: str,
        *,
        max_cost_usd: float | None = None,
        optimize_for: str | None = None,
        endpoint_id: str | None = None,
        compute_id: str | None = None,
    ) -> handles.AsyncTask:
        """Have an objective planned, run and reviewed."""
        constraints = _wire.without_none(
            max_cost_usd=max_cost_usd,
            optimize_for=optimize_for,
            endpoint_id=endpoint_id,
            compute_id=compute_id,
        )
        body: dict[str, object] = {"objective": objective, "constraints": constraints}
        return await self._posted(body)

    async def review(
        self,
        id: str,  # noqa: A002
        decision: str,
        *,
        issues: Sequence[str] = (),
        score: float | None = None,
        criteria: Mapping[str, float] | None = None,
        node_id: str | None = None,
        constraints: Mapping[str, object] | None = None,
    ) -> handles.AsyncTask:
        """Judge a task that has ended, in place of the reviewer.

        Args:
            id: the task.
            decision: `pass`, `fail`, or `retry` to run part of it again.
            issues: what is wrong with it.
            score: overall, 0 to 1.
            criteria: `objective_alignment`, `technical_success`, `output_completeness`; 0 to 1.
            node_id: what a retry runs again, with what depends on it; the last node by default.
            constraints: input members that a retry sets on that node.

        Raises:
            RequestError: `CONFLICT` for a task that goes on, or was retried twice.
        """
        body = _wire.without_none(
            decision=decision,
            issues=list(issues),
            score=score,
            criteria=criteria and dict(criteria),
            node_id=node_id,
            constraints=constraints and dict(constraints),
        )
        return self._made(
            (await self._http.call("POST", f"/tasks/{id}/reviews", json=body))["data"]
        )

    async def resume(self, id: str) -> handles.AsyncTask:  # noqa: A002
        """Take a blocked task back to planning.

        Raises:
            RequestError: `CONFLICT` when it is not blocked.
        """
        return self._made((await self._http.call("POST", f"/tasks/{id}/resume"))["data"])


class AsyncPlans(AsyncArea[handles.AsyncPlan]):
    """`client.plans`."""

    handle = handles.AsyncPlan

    async def create(
        self,
        objective: str,
        *,
        max_cost_usd: float | None = None,
        optimize_for: str | None = None,
    ) -> handles.AsyncPlan:
        """Plan an objective without doing it."""
        constraints = _wire.without_none(max_cost_usd=max_cost_usd, optimize_for=optimize_for)
        return await self._posted({"objective": objective, "constraints": constraints})


class _Rented(AsyncArea[H]):
    async def delete(self, id: str) -> H:  # noqa: A002
        """Have its vendor destroy it; nothing is billed for it from then on.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` when it is in use, or the vendor did not do it.
        """
        return self._made((await self._http.call("DELETE", f"/{self.handle.area}/{id}"))["data"])


class AsyncEndpoints(_Rented[handles.AsyncEndpoint]):
    """`client.endpoints`."""

    handle = handles.AsyncEndpoint

    async def create(
        self,
        name: str | None = None,
        *,
        gpu_ids: str | None = None,
        workers_min: int | None = None,
        workers_max: int | None = None,
        storage_id: str | None = None,
        template_id: str | None = None,
        image: str | None = None,
    ) -> handles.AsyncEndpoint:
        """Create a serverless endpoint; what is left out has the contract's default.

        Args:
            name: what to call it.
            gpu_ids: a pool of the catalogue, such as `ADA_24`.
            workers_min: how many workers it keeps.
            workers_max: how many it may have.
            storage_id: a volume to attach.
            template_id: a shared template that is for endpoints.
            image: the container to run when there is no template; an image worker by default.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST`, `NOT_FOUND`, `CONFLICT`.
        """
        return await self._posted(
            _wire.without_none(
                name=name,
                gpu_ids=gpu_ids,
                workers_min=workers_min,
                workers_max=workers_max,
                storage_id=storage_id,
                template_id=template_id,
                image=image,
            )
        )


class AsyncComputes(_Rented[handles.AsyncCompute]):
    """`client.compute`."""

    handle = handles.AsyncCompute

    async def create(
        self,
        name: str,
        gpu_type: str,
        *,
        image: str | None = None,
        storage_id: str | None = None,
        template_id: str | None = None,
    ) -> handles.AsyncCompute:
        """Rent a GPU pod; it is billed by the hour until it is deleted.

        Args:
            name: what to call it.
            gpu_type: a GPU of the catalogue, such as `NVIDIA GeForce RTX 4090`.
            image: the container to run when there is no template; an image worker by default.
            storage_id: a volume to mount; the pod is then where the volume is.
            template_id: a shared template that is for pods.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST`, `NOT_FOUND`, `CONFLICT`.
        """
        return await self._posted(
            _wire.without_none(
                name=name,
                gpu_type=gpu_type,
                image=image,
                storage_id=storage_id,
                template_id=template_id,
            )
        )


class AsyncStorages(_Rented[handles.AsyncStorage]):
    """`client.storage`."""

    handle = handles.AsyncStorage

    async def create(
        self, name: str, size_gb: int, *, data_center: str | None = None
    ) -> handles.AsyncStorage:
        """Rent a network volume; it is billed by its size until it is deleted.

        Args:
            name: what to call it.
            size_gb: gigabytes, 10 to 4096.
            data_center: where it is, such as `EU-RO-1`; the service chooses by default.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST`.
        """
        return await self._posted(
            _wire.without_none(name=name, size_gb=size_gb, data_center=data_center)
        )


class AsyncTemplates(_Rented[handles.AsyncTemplate]):
    """`client.templates`; lists leave out the hidden ones, which go with their endpoint."""

    handle = handles.AsyncTemplate

    async def create(
        self, name: str, image: str, *, serverless: bool = True
    ) -> handles.AsyncTemplate:
        """Make a template to share.

        Args:
            name: what to call it.
            image: the container.
            serverless: whether endpoints run it; pods do otherwise.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST`.
        """
        return await self._posted({"name": name, "image": image, "serverless": serverless})


class AsyncCatalog:
    """`client.catalog`: what can be rented, and vendors' models, with list prices."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def gpus(self) -> Collection[Shown[Gpu]]:
        """The GPUs of the cloud that is connected, by the id that a compute's `gpu_type` takes.

        Raises:
            RequestError: `CREDENTIALS_MISSING`.
        """
        found = (await self._http.call("GET", "/catalog/gpus"))["data"]["items"]
        return Collection([Shown(Gpu.model_validate(item), "GPU") for item in found], "GPUs")

    async def models(self) -> Collection[Shown[CatalogModel]]:
        """Every vendor's models with their list prices."""
        found = (await self._http.call("GET", "/catalog/models"))["data"]["items"]
        shown = [Shown(CatalogModel.model_validate(item), "Model") for item in found]
        return Collection(shown, "models")


class AsyncArtifacts(AsyncArea[handles.AsyncArtifact]):
    """`client.artifacts`."""

    handle = handles.AsyncArtifact

    async def get(self, id: str) -> handles.AsyncArtifact:  # noqa: A002
        """Read one; a small one comes with its bytes, so that it can show itself."""
        artifact = await super().get(id)
        if artifact.record.size_bytes <= handles.SHOWN_BYTES:
            await artifact.content()
        return artifact

    async def content(self, id: str) -> bytes:  # noqa: A002
        """The bytes of one.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        return (await self._http.send("GET", f"/artifacts/{id}/content")).content

    async def delete(self, id: str) -> handles.AsyncArtifact:  # noqa: A002
        """Delete one with its bytes.

        Raises:
            RequestError: `CONFLICT` while the work that it is part of goes on.
        """
        return self._made((await self._http.call("DELETE", f"/artifacts/{id}"))["data"])

    async def lineage(self, id: str) -> LineageView:  # noqa: A002
        """The jobs and artifacts that one came from."""
        envelope = await self._http.call("GET", f"/artifacts/{id}/lineage")
        return LineageView(_wire.data_of(envelope, Lineage))

    async def upload(
        self, source: bytes | str | Path, *, filename: str = "upload"
    ) -> handles.AsyncArtifact:
        """Keep a file, such as reference audio; its type is told from its bytes."""
        data = source if isinstance(source, bytes) else _wire.read(source)
        envelope = await self._http.call("POST", "/artifacts", files={"file": (filename, data)})
        return self._made(envelope["data"])


class AsyncAccounts:
    """`client.account`."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def create(self, email: str) -> AccountCreated:
        """Open an account; the key is shown this once."""
        envelope = await self._http.call("POST", "/account", json={"email": email})
        return _wire.data_of(envelope, AccountCreated)

    async def get(self) -> Account:
        """The caller's account."""
        return _wire.data_of(await self._http.call("GET", "/account"), Account)

    async def keys(self, limit: int = 50, cursor: str | None = None) -> Collection[Shown[ApiKey]]:
        """A page of the account's keys, newest first: never the keys themselves."""
        params = _wire.page(limit, cursor)
        found = (await self._http.call("GET", "/account/keys", params=params))["data"]
        items = [Shown(ApiKey.model_validate(item), "Key") for item in found["items"]]
        return Collection(items, "keys", found["next_cursor"])

    async def key(self, id: str) -> ApiKey:  # noqa: A002
        """What is known of a key: never the key itself."""
        return _wire.data_of(await self._http.call("GET", f"/account/keys/{id}"), ApiKey)

    async def create_key(
        self,
        *,
        name: str | None = None,
        scopes: Sequence[str] | None = None,
        max_cost_usd_per_day: float | None = None,
    ) -> KeyCreated:
        """Make another key; it is shown this once.

        Args:
            name: what it is for.
            scopes: `read`, `write`, `admin`; the first two by default.
            max_cost_usd_per_day: what all work asked for with it may cost in a day, by UTC.
        """
        body = _wire.without_none(
            name=name,
            scopes=None if scopes is None else list(scopes),
            max_cost_usd_per_day=max_cost_usd_per_day,
        )
        return _wire.data_of(await self._http.call("POST", "/account/keys", json=body), KeyCreated)

    async def rotate_key(self, id: str, *, overlap_s: int | None = None) -> KeyCreated:  # noqa: A002
        """Make a key in the place of another; it is shown this once.

        Args:
            id: of the old one.
            overlap_s: how long that is still good, in seconds; a day by default, 0 ends it at once.
        """
        body = _wire.without_none(overlap_s=overlap_s)
        envelope = await self._http.call("POST", f"/account/keys/{id}/rotate", json=body)
        return _wire.data_of(envelope, KeyCreated)

    async def revoke(self, id: str) -> ApiKey:  # noqa: A002
        """Make a key invalid at once."""
        return _wire.data_of(await self._http.call("DELETE", f"/account/keys/{id}"), ApiKey)


class AsyncAgents(AsyncArea[handles.AsyncAgent]):
    """`client.agents`."""

    handle = handles.AsyncAgent

    async def create(
        self,
        name: str,
        objective: str,
        *,
        version: str | None = None,
        capabilities: Sequence[str] | None = None,
        max_cost_usd: float | None = None,
        optimize_for: str | None = None,
        endpoint_id: str | None = None,
        compute_id: str | None = None,
    ) -> handles.AsyncAgent:
        """Register a version of an agent; run it by its handle, or by its name in `runs.create`.

        Args:
            name: in lower case, such as `card-maker`.
            objective: what is wanted; each `{word}` in it is a parameter of its runs.
            version: `1` by default; a version never changes.
            capabilities: the only ones it may use; all, by default.
            max_cost_usd: what each run may cost.
            optimize_for: `cost`, `latency`, `quality` or `balanced`.
            endpoint_id: a serverless endpoint, for images.
            compute_id: a GPU pod to use instead.

        Raises:
            RequestError: `CONFLICT` for a name and version that are there, `NOT_FOUND`.
        """
        constraints = _wire.without_none(
            max_cost_usd=max_cost_usd,
            optimize_for=optimize_for,
            endpoint_id=endpoint_id,
            compute_id=compute_id,
        )
        body = _wire.without_none(
            name=name,
            version=version,
            objective=objective,
            constraints=constraints,
            capabilities=None if capabilities is None else list(capabilities),
        )
        return await self._posted(body)

    async def delete(self, id: str) -> handles.AsyncAgent:  # noqa: A002
        """Take one back; its runs stay."""
        return self._made((await self._http.call("DELETE", f"/agents/{id}"))["data"])


class AsyncUsage:
    """`client.usage`."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def list(
        self,
        group_by: Sequence[str] = ("day", "capability", "provider"),
        *,
        first: date | str | None = None,
        last: date | str | None = None,
    ) -> UsageLines:
        """What was used, summed up: a line for each that is alike in all it is grouped by.

        Args:
            group_by: of `day`, `capability`, `provider`, `connection` and `agent`.
            first, last: the days from and up to which, by UTC; the last 30 by default.

        Raises:
            RequestError: `INVALID_REQUEST`, as for more than a year.
        """
        span = {"from": first, "to": last}
        days = {name: str(day) for name, day in span.items() if day is not None}
        params = {"group_by": ",".join(group_by), **days}
        found = (await self._http.call("GET", "/usage", params=params))["data"]["items"]
        return UsageLines([UsageView(UsageLine.model_validate(item)) for item in found])


class AsyncBillings:
    """`client.billing`."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def get(self, month: str | None = None) -> BillingView:
        """What each vendor bills for a month, as this service saw it.

        Args:
            month: such as `2026-11`; the present one by default.
        """
        envelope = await self._http.call("GET", "/billing", params=_wire.without_none(month=month))
        return BillingView(_wire.data_of(envelope, Billing))
