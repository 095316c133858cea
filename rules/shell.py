"""Examples for `shell.yaml`: a line below `ruleid` is found, one below `ok` is left alone."""

import asyncio
import os
import subprocess


async def run(command: str) -> None:
    # ruleid: no-shell
    subprocess.run(command, shell=True)
    # ruleid: no-shell
    os.system(command)
    # ruleid: no-shell
    await asyncio.create_subprocess_shell(command)
    # ok: no-shell
    subprocess.run(["ruff", command])
