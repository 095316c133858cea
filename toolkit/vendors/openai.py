"""OpenAI (V1), and any server that speaks its chat wire, by base URL: text."""

import re

from toolkit.plugins import (
    Access,
    Flow,
    TextReply,
    TextRequest,
    TokenBound,
    Vendor,
    VendorFault,
    send,
)
from toolkit.vendors import _chat
from toolkit.vendors._http import (
    OUT_OF_CREDIT,
    REFUSED,
    Answer,
    Json,
    bearer,
    inner,
    listed_names,
    probed,
)
from toolkit.vendors._negotiation import negotiate
from toolkit.vendors._prices import models

PATH = "/chat/completions"
_VALIDATION = re.compile(r"\bvalidation errors?\b.*'loc': \('body'", re.DOTALL)


def text(operation: TextRequest, access: Access) -> Flow[TextReply]:
    """Generate text by chat completions.

    Newer models refuse some parameters by name, and other servers do not know all of the wire:
    a refused field is left out, or sent in another form.

    Raises:
        VendorFault: as the error table of the vendor's documents has it.
    """
    answer = yield from negotiate(operation, access, lambda fields: _asked(access, fields))
    said = answer.json()
    if answer.failed:
        raise _failure(answer, said)
    return _chat.reply(answer, said, operation)


def probe(access: Access) -> Flow[list[str]]:
    """List the models: free, and only for who has a key.

    Raises:
        VendorFault: `PROVIDER_AUTH_FAILED` when the key is refused.
    """
    answer = yield from probed("openai", access, "/models", bearer(access))
    said = answer.json()
    if answer.failed:
        raise _failure(answer, said)
    return listed_names(answer, said.get("data"), "id")


def _asked(access: Access, fields: Json) -> Flow[Answer]:
    return Answer(
        "openai", access, (yield from send(_chat.request(access, PATH, fields), instead=True))
    )


def _failure(answer: Answer, said: Json) -> VendorFault:
    error = inner(said, "error")
    words = error.get("message") or said.get("error") or said.get("message") or said.get("detail")
    if "insufficient_quota" in (error.get("code"), error.get("type")):
        return answer.failure(words, verdict=OUT_OF_CREDIT)
    # Some servers validate a request and answer 500 where it is the request that is wrong.
    refused = answer.status == 500 and bool(_VALIDATION.search(str(words)))
    return answer.failure(words, verdict=REFUSED if refused else None)


VENDOR = Vendor(
    id="openai",
    label="V1",
    title="OpenAI and compatible servers",
    variable="OPENAI_API_KEY",
    base_urls={"api": "https://api.openai.com/v1"},
    operations={TextRequest: text},
    models=models("openai"),
    bounds={
        TextRequest: TokenBound(
            "API reference, chat completions: max_completion_tokens bounds what is generated,"
            " visible tokens and reasoning tokens alike"
        )
    },
    probe=probe,
)
