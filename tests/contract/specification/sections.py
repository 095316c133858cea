"""Sections of the specification, by its headings, and the mark that names them."""

import pytest

# "A > B" is the heading B below A. The title of the page is no section.
SECTIONS = (
    "What the service does",
    "Resources and their fields",
    "Resources and their fields > Response envelope",
    "Resources and their fields > Id prefixes",
    "Resources and their fields > Account",
    "Resources and their fields > Provider connection",
    "Resources and their fields > Capability object",
    "Resources and their fields > Registered capabilities",
    "Resources and their fields > Serverless endpoint (ep_)",
    "Resources and their fields > Run",
    "Resources and their fields > Task (tsk_)",
    "Resources and their fields > Workflow (wfl_)",
    "States and transitions",
    "States and transitions > Task status",
    "States and transitions > Workflow status",
    "States and transitions > Run status",
    "States and transitions > Capability status",
    "Endpoints",
    "Endpoints > Account",
    "Endpoints > Provider connections",
    "Endpoints > Capabilities",
    "Endpoints > Runs",
    "Endpoints > Endpoints (serverless)",
    "Endpoints > Tasks",
    "Endpoints > Workflows",
    "Endpoints > Other areas",
    "Authentication",
    "Events",
    "Errors",
    "Limits",
    "Versioning",
)


def section(name: str) -> pytest.MarkDecorator:
    """Mark a test with the section of the specification that it tests."""
    if name not in SECTIONS:
        raise ValueError(f"the specification has no section {name!r}")
    return pytest.mark.section(name)
