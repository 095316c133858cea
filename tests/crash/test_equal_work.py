"""Equal work in two kernels at once: each input is paid once, by the vendor's own log."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.crash.processes import open_cloud
from tests.support.database_pool import BOTH_DATABASES
from tests.support.timing import PATIENCE_S

ROWS = 19
KERNEL = f"""
import sys
from toolkit import Client

rows = [{{"topic": f"harbour {{n}}"}} for n in range({ROWS})]
with Client.local(sys.argv[1], sandbox=True) as client:
    print("ready", flush=True)
    sys.stdin.readline()
    frame = client.map(
        "llm.generate", rows, objective="A line on {{topic}}", progress=False,
        options={{"provider": "minimax", "cache": True}},
    )
    assert list(frame["status"]) == ["completed"] * {ROWS}, frame
"""


@pytest.mark.parametrize("database", BOTH_DATABASES)
def test_two_kernels_that_map_equal_rows_pay_each_row_once(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Given two kernels that map the same rows at once, then no input is billed twice."""
    with open_cloud(latency_ms=200) as cloud:
        env = {**os.environ, **cloud.environment()}
        if database == "postgresql":
            env["TOOLKIT_DATABASE"] = request.getfixturevalue("postgres_url")
        kernels = [
            subprocess.Popen(
                [sys.executable, "-c", KERNEL, str(tmp_path / "data")],
                env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
            for _ in range(2)
        ]  # fmt: skip
        for kernel in kernels:
            assert kernel.stdout is not None
            assert kernel.stdout.readline() == "ready\n"
        for kernel in kernels:
            assert kernel.stdin is not None
            kernel.stdin.write("go\n")
            kernel.stdin.flush()
        try:
            for kernel in kernels:
                kernel.communicate(timeout=PATIENCE_S)
                assert kernel.returncode == 0
        finally:
            for kernel in kernels:
                kernel.kill()
        billed = Counter(call["digest"] for call in cloud.calls() if call["billed"])
    assert len(billed) == ROWS
    assert set(billed.values()) == {1}
