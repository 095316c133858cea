"""The `vertex-token` wire: Google's grant of tokens to service accounts, by OAuth 2.0."""

import base64
import json
import time

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from toolkit.sandbox.json_http import JsonObject, RefusalError
from toolkit.sandbox.state import SandboxState, get_request_digest
from toolkit.sandbox.wires.vertex import GrantedTokens

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:jwt-bearer"
AUDIENCE = "https://oauth2.googleapis.com/token"
MAX_LIFE_S, TOKEN_LIFE_S = 3_600, 3_599
_ACCOUNT_DOMAIN = ".iam.gserviceaccount.com"
_ERRORS = {400: "invalid_grant", 401: "invalid_client"}


def refuse(status: int, message: str) -> RefusalError:
    """Make a refusal in the format of OAuth 2.0."""
    error = _ERRORS.get(status, "internal_failure")
    return RefusalError({"error": error, "error_description": message}, status)


def build_routes(state: SandboxState) -> list[BaseRoute]:
    """Build the route that exchanges an assertion for a token; signatures are not checked."""
    tokens = state.get_records(GrantedTokens)

    async def grant(request: Request) -> Response:
        form = await request.form()
        if form.get("grant_type") != GRANT_TYPE:
            raise refuse(400, f"Invalid grant_type: {form.get('grant_type')}")
        _check_claims(str(form.get("assertion")))
        token = f"ya29.sandbox-{get_request_digest(request)}"
        tokens.ends[token] = time.time() + TOKEN_LIFE_S
        answer = {"access_token": token, "expires_in": TOKEN_LIFE_S, "token_type": "Bearer"}
        return JSONResponse(answer)

    return [Route("/token", grant, methods=["POST"])]


def _check_claims(assertion: str) -> None:
    """Check the claims of an assertion, as the guide to service accounts lists them."""
    try:
        head, claims = (_decode(part) for part in assertion.split(".")[:2])
        issued, ends = float(claims["iat"]), float(claims["exp"])
    except (ValueError, KeyError, TypeError):
        raise refuse(400, "Invalid JWT: it must be a signed token with iat and exp.") from None
    if head.get("alg") != "RS256" or claims.get("aud") != AUDIENCE or not claims.get("scope"):
        raise refuse(400, "Invalid JWT: wrong algorithm, audience or scope.")
    if not issued - 60 <= time.time() < ends <= issued + MAX_LIFE_S:
        raise refuse(400, "Invalid JWT: it must be a short-lived token (60 minutes).")
    if not str(claims.get("iss")).endswith(_ACCOUNT_DOMAIN):
        raise refuse(400, "Invalid grant: account not found")


def _decode(part: str) -> JsonObject:
    """Decode a part of a token."""
    decoded = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    if not isinstance(decoded, dict):
        raise TypeError("a part is an object")
    return decoded
