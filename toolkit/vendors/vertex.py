"""Vertex AI: the Gemini models of a project in Google Cloud, by the JSON of a service account."""

import base64
import hashlib
import json
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import httpx

from toolkit.plugins import (
    REPLAY_PLACEHOLDER,
    UNRECORDED,
    Access,
    EmbedRequest,
    Flow,
    TextRequest,
    TranscribeRequest,
    Vendor,
    run_in_thread,
    send,
)
from toolkit.vendors import google
from toolkit.vendors._http import (
    KEY_REFUSED,
    VendorResponse,
    build_json_request,
    make_secret_error,
    read_json_secret,
    read_text_member,
    to_finite_number,
)
from toolkit.vendors._prices import load_models
from toolkit.vendors._wire import ask_at_place

BASE_URL = "https://aiplatform.googleapis.com"
TOKEN_URL = "https://oauth2.googleapis.com"  # noqa: S105 - an address
# Guide to OAuth 2.0 for service accounts: the claims of an assertion, and how it is exchanged.
GRANT_TYPE = "urn:ietf:params:oauth:grant-type:jwt-bearer"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
ASSERTION_LIFE_S = 3_600
# A token is asked for again so many seconds before its end.
TOKEN_MARGIN_S = 120.0
# Places of several regions have hosts of their own (guide to locations).
_MULTI_REGIONS = frozenset(("eu", "us"))
_NAME = re.compile(r"[a-z0-9][a-z0-9.:-]*")
_REFUSALS = frozenset(("invalid_client", "invalid_grant", "unauthorized_client"))
_MODELS = load_models("vertex")


def sign_in(access: Access) -> Flow[Access]:
    """Exchange the secret for a token, which is kept in memory until shortly before its end.

    The secret is the JSON of a service account, and may have a `location`, else it is `global`.
    Instead of an account's key it may have an `access_token`.

    Raises:
        ProviderError: `SECRET_UNRESOLVED` for any other secret; the message quotes nothing of it.
            `PROVIDER_AUTH_FAILED` if Google refuses the account.
    """
    pointed = access.secret
    if pointed == REPLAY_PLACEHOLDER:
        return replace(access, place=_build_place(REPLAY_PLACEHOLDER, REPLAY_PLACEHOLDER))
    members = read_json_secret(pointed)
    project = read_text_member(members, "project_id")
    location = read_text_member(members, "location") or "global"
    if not (_NAME.fullmatch(project) and _NAME.fullmatch(location)):
        raise make_secret_error(
            "The secret of vertex is not the JSON of a service account with `project_id` and, if"
            " you like, `location`: store the file that Google Cloud made for the account."
        )
    token = read_text_member(members, "access_token") or (yield from _fetch_token(access, members))
    url = access.base_urls["api"]
    if url == BASE_URL:
        url = _find_host(location)
    return replace(
        access, base_urls={"api": url}, secret=token, place=_build_place(project, location)
    )


def _build_place(project: str, location: str) -> str:
    """Return the path of the models of Google in a project, at a location."""
    return f"projects/{project}/locations/{location}/publishers/google/"


def _find_host(location: str) -> str:
    """Return the base URL of a location.

    >>> _find_host("europe-west4"), _find_host("eu")
    ('https://europe-west4-aiplatform.googleapis.com', 'https://aiplatform.eu.rep.googleapis.com')
    """
    if location == "global":
        return BASE_URL
    if location in _MULTI_REGIONS:
        return f"https://aiplatform.{location}.rep.googleapis.com"
    return f"https://{location}-aiplatform.googleapis.com"


def _fetch_token(access: Access, account: Mapping[str, object]) -> Flow[str]:
    """Return the token that was granted for the secret, or ask for one."""
    digest = hashlib.sha256(access.secret.encode()).hexdigest()
    known, end = access.tokens.get(digest, ("", 0.0))
    if time.time() < end:
        return known
    assertion = yield from run_in_thread(_sign_assertion, account)
    request = httpx.Request(
        "POST",
        access.url("/token", "token"),
        data={"grant_type": GRANT_TYPE, "assertion": assertion},
        extensions={UNRECORDED: True},
    )
    asked = replace(access, secret=assertion)
    answer = VendorResponse(asked, (yield from send(request, free=True)))
    body = answer.json()
    token, life = body.get("access_token"), to_finite_number(body.get("expires_in"))
    if answer.is_failure:
        verdict = KEY_REFUSED if body.get("error") in _REFUSALS else None
        raise answer.build_failure(body.get("error_description"), verdict=verdict)
    if not isinstance(token, str) or not token or life is None:
        raise answer.build_bad_response("The answer of vertex has no token in it.")
    access.tokens.clear()  # the token of a secret that was replaced
    access.tokens[digest] = token, time.time() + life - TOKEN_MARGIN_S
    return token


def _sign_assertion(account: Mapping[str, object]) -> str:
    """Sign the claims of a service account, as a JSON web token by RS256 (RFC 7515 and 7518).

    Raises:
        ProviderError: `SECRET_UNRESOLVED` if the account has no RSA key, or cryptography is
            missing.
    """
    try:  # imported here, because only this needs the extra
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding, rsa
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError:
        raise make_secret_error(
            "Signing in to vertex needs cryptography: install `capability-toolkit[vertex]`."
        ) from None
    email = read_text_member(account, "client_email")
    try:
        key = load_pem_private_key(read_text_member(account, "private_key").encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, rsa.RSAPrivateKey) or not email:
        raise make_secret_error(
            "The secret of vertex has no `client_email`, or no RSA key as `private_key`: store the"
            " file that Google Cloud made for the account."
        )
    now = int(time.time())
    head = {"alg": "RS256", "typ": "JWT", "kid": read_text_member(account, "private_key_id")}
    claims = {
        "iss": email,
        "scope": SCOPE,
        "aud": f"{TOKEN_URL}/token",
        "iat": now,
        "exp": now + ASSERTION_LIFE_S,
    }
    content = ".".join(_encode(json.dumps(part).encode()) for part in (head, claims))
    signature = key.sign(content.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{content}.{_encode(signature)}"


def _encode(data: bytes) -> str:
    """Return bytes in the Base64 of URLs, without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _find_price_place(access: Access) -> str:
    """Return whose prices hold: those of the global endpoint or of all others; "" if not known."""
    location = access.place.partition("/locations/")[2].partition("/")[0]
    unknown = "", REPLAY_PLACEHOLDER  # a replay has no secret that names it
    return "" if location in unknown else "global" if location == "global" else "regional"


def probe(access: Access) -> Flow[None]:
    """Check the account by counting the tokens of a text, which is free.

    Raises:
        ProviderError: `PROVIDER_AUTH_FAILED` if the account may not use the models.
    """
    default = next(model.id for model in _MODELS if model.default)
    url = access.url(google.build_path(replace(access, model=default), "countTokens"))
    fields = {"contents": [{"role": "user", "parts": [{"text": "tide"}]}]}
    request = build_json_request(url, fields, google.WIRE.build_headers(access))
    google.WIRE.read(VendorResponse(access, (yield from send(request, free=True))))


_at_location = partial(ask_at_place, models=_MODELS, find_place=_find_price_place)
VENDOR = Vendor(
    id="vertex",
    title="Google Vertex AI",
    variable="VERTEX_SERVICE_ACCOUNT",
    base_urls={"api": BASE_URL, "token": TOKEN_URL},
    operations={
        TextRequest: _at_location(google.generate_text),
        EmbedRequest: _at_location(google.embed_texts),
        TranscribeRequest: _at_location(google.transcribe_audio),
    },
    models=_MODELS,
    bounds=google.VENDOR.bounds,
    sign_in=sign_in,
    probe=probe,
    telemetry_name="gcp.vertex_ai",
)
