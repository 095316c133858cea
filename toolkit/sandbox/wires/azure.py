"""The `azure` wire: OpenAI's models as deployments, by the v1 API or by the deployment's path."""

from starlette.routing import BaseRoute

from toolkit.sandbox.state import SandboxState
from toolkit.sandbox.vendor_paths import AZURE_KEY, CompatibleVendor
from toolkit.sandbox.wires import openai

# The v1 API names the deployment in the body, older versions in the path.
_BASE_PATHS = ("/openai/v1", "/openai/deployments/{deployment}")


def build_routes(state: SandboxState) -> list[BaseRoute]:
    """Build the routes of both APIs; each model is deployed under its own name."""
    vendors = [
        CompatibleVendor("azure-api", AZURE_KEY, (), path, key_header="api-key")
        for path in _BASE_PATHS
    ]
    return [route for vendor in vendors for route in openai.build_original_routes(state, vendor)]
