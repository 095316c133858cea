"""A language model to run a benchmark with: the address of any server with OpenAI's interface.

It is named by `--base-url` and `--model`, or the variables `BENCHMARK_BASE_URL` and
`BENCHMARK_MODEL`; `BENCHMARK_API_KEY` holds the key, for servers that require one. Without an
address the model is skipped, and the output says so.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from toolkit import Client
from toolkit.settings import EVERY_MODEL, Settings, TokenPrices, VendorSettings

KEY_VARIABLE = "BENCHMARK_API_KEY"
CALL_TIMEOUT_S = 600.0


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a model."""
    parser.add_argument("--base-url", default=os.environ.get("BENCHMARK_BASE_URL"))
    parser.add_argument("--model", default=os.environ.get("BENCHMARK_MODEL"))


def report_skipped(figure: str) -> None:
    """Print that a figure is skipped because no model is named."""
    reason = "no model is named; set --base-url and --model, or BENCHMARK_BASE_URL and _MODEL"
    print(json.dumps({"figure": figure, "skipped": reason}), flush=True)


@contextmanager
def open_model_client(base_url: str, model: str) -> Iterator[Client]:
    """Open a client with its own engine, whose only connection is the model."""
    os.environ.setdefault(KEY_VARIABLE, "none")
    with tempfile.TemporaryDirectory() as folder:
        vendor = VendorSettings(
            base_urls={"api": base_url},
            models={"text": model},
            prices={EVERY_MODEL: TokenPrices(input_tokens=0, output_tokens=0)},
        )
        settings = Settings(
            data_dir=folder,
            vendors={"openai": vendor},
            timeout_s=CALL_TIMEOUT_S,
            first_byte_timeout_s=CALL_TIMEOUT_S,
            connection_test_s=0,
        )
        client = Client.local(settings=settings)
        try:
            client.connections.create("openai", "environment", KEY_VARIABLE)
            yield client
        finally:
            client.close()
