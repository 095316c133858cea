"""A vendor's API: what the requests of all its operations share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import httpx

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Access, Flow, Model, ProviderError, run_in_thread, send
from toolkit.plugins.streaming import StreamReader
from toolkit.plugins.vendor import OperationFlow, ProbeFlow
from toolkit.vendors._http import (
    Json,
    VendorResponse,
    build_bearer_headers,
    build_json_request,
    list_objects,
)


@dataclass(frozen=True, slots=True)
class VendorWire:
    """An API of a vendor; its flows raise the error of an answer that reports a failure.

    Attributes:
        build_failure: function that builds the error.
        build_headers: function that builds the headers with the key.
        has_failed: function that checks whether an answer reports a failure.
    """

    build_failure: Callable[[VendorResponse, Json], ProviderError]
    build_headers: Callable[[Access], dict[str, str]] = build_bearer_headers
    has_failed: Callable[[VendorResponse, Json], bool] = lambda answer, _body: answer.is_failure

    def ask(
        self,
        access: Access,
        path: str,
        fields: Json,
        *,
        stream: StreamReader | None = None,
        instead: bool = False,
        free: bool = False,
    ) -> Flow[VendorResponse]:
        """Post a JSON object; the answer may be a failure. `send` explains the options."""
        request = build_json_request(access.url(path), fields, self.build_headers(access))
        response = yield from send(request, stream=stream, instead=instead, free=free)
        return VendorResponse(access, response)

    def post(
        self, access: Access, path: str, fields: Json, *, free: bool = False
    ) -> Flow[tuple[VendorResponse, Json]]:
        """Post a JSON object, and read the answer."""
        answer = yield from self.ask(access, path, fields, free=free)
        return answer, (yield from run_in_thread(self.read, answer))

    def get(self, access: Access, path: str) -> Flow[tuple[VendorResponse, Json]]:
        """Get a JSON object."""
        answer = yield from self.fetch(access, path)
        return answer, self.read(answer)

    def fetch(self, access: Access, path: str) -> Flow[VendorResponse]:
        """Get anything; the answer may be a failure."""
        request = httpx.Request("GET", access.url(path), headers=self.build_headers(access))
        return VendorResponse(access, (yield from send(request)))

    def post_form(
        self,
        access: Access,
        path: str,
        fields: Mapping[str, str | None],
        files: Mapping[str, tuple[str, bytes, str]],
        *,
        free: bool = False,
    ) -> Flow[tuple[VendorResponse, Json]]:
        """Post a form with files, and read the answer; fields that are None are left out."""
        request = httpx.Request(
            "POST",
            access.url(path),
            data={name: value for name, value in fields.items() if value is not None},
            files=files,
            headers=self.build_headers(access),
        )
        answer = VendorResponse(access, (yield from send(request, free=free)))
        return answer, (yield from run_in_thread(self.read, answer))

    def read(self, answer: VendorResponse) -> Json:
        """Return the body of an answer that reports no failure.

        Raises:
            ProviderError: the answer reports a failure, or is no JSON object.
        """
        body = answer.json()
        if self.has_failed(answer, body):
            raise self.build_failure(answer, body)
        return body

    def make_probe(self, path: str, listed: str = "", member: str = "") -> ProbeFlow:
        """Make the flow that reads a list, which is free and needs a key.

        Args:
            path: path of the list.
            listed: member of the answer that lists models; "" for a list of something else.
            member: member of an item that holds the name of a model.
        """

        def probe(access: Access) -> Flow[list[str] | None]:
            answer, body = yield from self.get(access, path)
            rows = list_objects(body, listed)
            names = (answer.read_label(row.get(member)) for row in rows)
            return [name for name in names if name] if listed else None

        return probe


def ask_at_place(
    flow: OperationFlow, models: tuple[Model, ...], find_place: Callable[[Access], str]
) -> OperationFlow:
    """Make a flow that asks a model by the server's name of it, and replies with its profile.

    The profile is the model with the prices of the place that serves it. Granted tokens are
    dropped if the vendor refuses one.

    Args:
        flow: the flow of the wire.
        models: the vendor's models, with a profile for each place.
        find_place: function that returns the place of a call; "" if it is not known.
    """
    originals = {model.id: model.profile_of for model in models if model.profile_of}

    def ask(operation: Any, access: Access) -> Flow[Any]:
        model, place = originals.get(access.model, access.model), find_place(access)
        try:
            reply = yield from flow(
                operation, replace(access, model=access.names.get(model, model))
            )
        except ProviderError as error:
            if error.code is ErrorCode.PROVIDER_AUTH_FAILED:
                access.tokens.clear()
            raise
        return replace(reply, model=f"{place}.{model}") if place else reply

    return ask
