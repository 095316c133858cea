"""Examples for `network.yaml`: a line below `ruleid` is found, one below `ok` is left alone."""

import ssl
import urllib.request

import httpx

# ruleid: no-calls-beside-the-driver
import requests


async def called(client, context, url: str) -> None:
    # ruleid: no-redirects
    await client.send(url, follow_redirects=True)
    # ok: no-redirects
    await client.send(url, stream=True, follow_redirects=False)
    # ruleid: no-unverified-hosts
    client.get(url, verify=False)
    # ruleid: no-unverified-hosts
    context.check_hostname = False
    # ruleid: no-unverified-hosts
    context.verify_mode = ssl.CERT_NONE
    # ok: no-unverified-hosts
    context.verify_mode = ssl.CERT_REQUIRED
    # ruleid: no-calls-beside-the-driver
    httpx.AsyncClient()
    # ruleid: no-calls-beside-the-driver
    httpx.get(url)
    # ruleid: no-calls-beside-the-driver
    urllib.request.urlopen(url)
    # ok: no-calls-beside-the-driver
    httpx.Request("GET", url)
    # ok: no-calls-beside-the-driver
    httpx.ASGITransport(client)
