"""Azure OpenAI: text and embeddings by models that the owner deployed; its secret is JSON."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter

import httpx

from toolkit.plugins import (
    REPLAY_PLACEHOLDER,
    Access,
    EmbedRequest,
    Flow,
    InputBound,
    TextRequest,
    TokenBound,
    Vendor,
)
from toolkit.vendors import openai
from toolkit.vendors._http import make_secret_error, read_json_secret, read_text_member
from toolkit.vendors._prices import load_models
from toolkit.vendors._wire import ask_at_place

# Replaced by the address in the secret, or in the settings.
BASE_URL = "https://your-resource.openai.azure.com/openai/v1"
# The addresses of resources, by Microsoft's guide to the v1 API. A key travels to no other host
# that a secret names: the operator's settings may name one.
_HOST = re.compile(r"[a-z0-9][a-z0-9-]*\.(openai|cognitiveservices|services\.ai)\.azure\.(com|us)")
_PATHS = ("", "/openai", "/openai/v1")
_MODELS = load_models("azure")
_PLACES = frozenset(m.id.removesuffix(f".{m.profile_of}") for m in _MODELS if m.profile_of)


def sign_in(access: Access) -> Flow[Access]:
    """Read the address, the key and the deployments of the secret, and send nothing.

    An address in the settings comes before the secret's. The secret may then be a key alone.

    Raises:
        ProviderError: `SECRET_UNRESOLVED` for any other secret; the message quotes nothing of it.
    """
    members = read_json_secret(access.secret)
    key = read_text_member(members, "api_key") if members else access.secret
    place = read_text_member(members, "data_zone")
    if key.startswith("{") or not key:
        raise make_secret_error("The secret of azure is JSON without `api_key`: add it.")
    if place and place not in _PLACES:
        zones = ", ".join(sorted(_PLACES))
        raise make_secret_error(f"`data_zone` in the secret of azure is none of {zones}.")
    url = access.base_urls["api"]
    if url == BASE_URL and key != REPLAY_PLACEHOLDER:
        url = _read_endpoint(read_text_member(members, "endpoint"))
    yield from ()  # a flow of no steps
    return replace(
        access,
        base_urls={"api": url},
        secret=key,
        place=place,
        names=_read_deployments(members.get("deployments")),
        # A resource that the operator names is Azure's own, too.
        compatible=access.compatible and not _HOST.fullmatch(httpx.URL(url).host),
    )


def _read_endpoint(endpoint: str) -> str:
    """Return the base URL of a resource, whose address a secret names."""
    try:
        url = httpx.URL(endpoint)
    except httpx.InvalidURL:
        url = httpx.URL()
    is_plain = url.scheme == "https" and not (url.port or url.userinfo or url.query)
    if not (is_plain and _HOST.fullmatch(url.host) and url.path.rstrip("/") in _PATHS):
        raise make_secret_error(
            "The secret of azure needs `endpoint`, such as https://NAME.openai.azure.com: store"
            " JSON with `endpoint` and `api_key`. The operator may set another address."
        )
    return f"https://{url.host}/openai/v1"


def _read_deployments(deployments: object) -> Mapping[str, str]:
    """Return the deployment of each model; a secret names the model of each deployment.

    A model without a named deployment has one of its own name.
    """
    pairs = deployments.items() if isinstance(deployments, dict) else ()
    return {model: str(name) for name, model in pairs if isinstance(model, str)}


def probe(access: Access) -> Flow[Sequence[str] | None]:
    """Check the key by a request for the list of models, which is free.

    Returns the models that are deployed, if the secret names them.

    Raises:
        ProviderError: `PROVIDER_AUTH_FAILED` if the key is refused.
    """
    names = yield from openai.probe(access)
    return list(access.names) or names


_at_deployment = partial(ask_at_place, models=_MODELS, find_place=attrgetter("place"))
VENDOR = Vendor(
    id="azure",
    title="Azure OpenAI",
    variable="AZURE_OPENAI_API_KEY",
    base_urls={"api": BASE_URL},
    operations={
        TextRequest: _at_deployment(openai.generate_text),
        EmbedRequest: _at_deployment(openai.embed_texts),
    },
    models=_MODELS,
    bounds={
        TextRequest: TokenBound(
            "API reference, chat completions: as at OpenAI, max_completion_tokens limits the"
            " output, reasoning included",
            picture=openai.MAX_PICTURE_TOKENS,
        ),
        EmbedRequest: InputBound("API reference, embeddings: the tokens of the input alone"),
    },
    sign_in=sign_in,
    probe=probe,
    dialect=replace(openai.VENDOR.dialect, key_header="api-key", batches=""),
    telemetry_name="azure.ai.openai",
)
