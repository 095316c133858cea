"""The server against its OpenAPI document: schemathesis calls every operation."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import POINTERS, Server

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
HOOKS = "tests.server.openapi.conformance"
ST = "from schemathesis.cli import schemathesis; schemathesis()"
EXAMPLES = os.environ.get("CONFORMANCE_EXAMPLES", "5")


def test_server_conforms_to_its_document(server: Server, tmp_path: Path) -> None:
    """Given the document, then every answer to a generated request conforms to it."""
    process = subprocess.run(
        [
            sys.executable, "-c", ST,
            "--no-color", f"--config-file={HERE / 'schemathesis.toml'}",
            "run", f"{server.url}/openapi.json",
            "--header", f"Authorization: Bearer {server.sign_up(*POINTERS)}",
            "--max-examples", EXAMPLES, "--seed", "1",
            "--continue-on-failure", "--warnings", "off",
        ],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "SCHEMATHESIS_HOOKS": HOOKS},
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )  # fmt: skip
    if process.returncode:
        pytest.fail(f"{process.stdout}\n{process.stderr}", pytrace=False)
    assert "Tested: " in process.stdout
