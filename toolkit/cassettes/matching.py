"""Matching of requests: by method, URL and body, in a canonical form."""

import hashlib
import json
import re
from typing import NamedTuple

import httpx

from toolkit.cassettes.scrubbing import Scrubber

# The toolkit's own ids (`job_01j…`) differ in each process; some are in names at vendors.
_OWN_ID = re.compile(rb"\b([a-z]{2,3})_[0-7][0-9a-hjkmnp-tv-z]{25}(?![0-9a-z])")
# The region, resource or project comes from the secret, which is not available in a replay.
_REGIONAL_HOST = re.compile(r"^(bedrock-runtime)\.[a-z0-9-]+\.(amazonaws\.com)$")
_RESOURCE_HOST = re.compile(
    r"^[a-z0-9-]+\.(?:openai|services\.ai|cognitiveservices)\.azure\.(?:com|us)$"
)
_LOCATION_HOST = re.compile(r"^(?:[a-z0-9-]+-)?aiplatform(?:\.[a-z]+\.rep)?\.googleapis\.com$")
_PROJECT = re.compile(r"/projects/[^/]+/locations/[^/]+/(?=publishers/)")
# The geography of the called inference profile depends on the region, too.
_PROFILE = re.compile(r"^/model/[a-z]+\.(?=(?:amazon|anthropic|openai|meta|mistral)\.)")
_MODEL = re.compile(r"^/model/([^/]+)/")
_BOUNDARY = re.compile(rb'boundary="?([^";,\s]+)')


class RequestKey(NamedTuple):
    """The canonical form of a request; requests with the same key get the same answers.

    Attributes:
        url: scheme, host, path and sorted query, without secrets.
        body: canonical text of a JSON body, `sha256:` and the digest of any other, or empty.
    """

    method: str
    url: str
    body: str


def compute_request_key(request: httpx.Request, scrubber: Scrubber) -> RequestKey:
    """Compute the key of a request whose body has been read; headers do not matter.

    >>> request = httpx.Request("GET", "https://a.example/x?b=2&a=1")
    >>> compute_request_key(request, Scrubber()).url
    'https://a.example/x?a=1&b=2'
    """
    url = request.url
    host = _REGIONAL_HOST.sub(r"\1.*.\2", url.host)
    host = _LOCATION_HOST.sub("aiplatform.googleapis.com", host)
    host = _RESOURCE_HOST.sub("*.openai.azure.com", host)
    address = f"{url.scheme}://{host}{f':{url.port}' if url.port else ''}"
    path, _, query = url.raw_path.decode("ascii").partition("?")
    path = _PROJECT.sub("/projects/*/locations/*/", path)
    if host != url.host:
        path = _PROFILE.sub("/model/", path)
    address += path + ("?" + "&".join(sorted(query.split("&"))) if query else "")
    address = _mask_own_ids(scrubber.scrub_text(address).encode()).decode()
    return RequestKey(request.method.upper(), address, _normalize_body(request, scrubber))


def get_requested_model(request: httpx.Request) -> str:
    """Return the model that a request names if its key leaves it out, else an empty text.

    The model's price depends on the profile, which a replay cannot know by itself.
    """
    path = request.url.path
    if not (_REGIONAL_HOST.match(request.url.host) and _PROFILE.match(path)):
        return ""
    match = _MODEL.match(path)
    return match[1] if match else ""


def _normalize_body(request: httpx.Request, scrubber: Scrubber) -> str:
    content = _mask_own_ids(scrubber.scrub_bytes(request.content))
    if not content:
        return ""
    kind = request.headers.get("content-type", "").encode("ascii", "replace")
    if b"json" in kind.lower():
        try:
            return json.dumps(json.loads(content), sort_keys=True, indent=2, ensure_ascii=False)
        except (ValueError, RecursionError):
            pass  # declared as JSON, but not valid: treated like any other bytes
    boundary = _BOUNDARY.search(kind)
    if kind.lower().startswith(b"multipart/") and boundary:
        content = content.replace(boundary[1], b"boundary")
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _mask_own_ids(content: bytes) -> bytes:
    return _OWN_ID.sub(rb"\1_*", content)
