"""The `cohere-compatible` wire: Cohere's chat models behind OpenAI's wire."""

from starlette.routing import BaseRoute

from toolkit.sandbox.state import SandboxState
from toolkit.sandbox.vendor_paths import SANDBOX_KEYS, CompatibleVendor
from toolkit.sandbox.wires import openai

MODELS = ("command-a-03-2025",)


def build_routes(_: SandboxState) -> list[BaseRoute]:
    """Build the routes of the compatibility API."""
    key = SANDBOX_KEYS["COHERE_API_KEY"]
    vendor = CompatibleVendor("cohere-chat", key, MODELS, "/compatibility/v1")
    return openai.build_compatible_routes(vendor)
