"""The catalog: GPUs and models, with their prices."""

import pytest

from toolkit import Client, RequestError
from toolkit.vendors import load_vendors

pytestmark = [pytest.mark.embedded, pytest.mark.sqlite("other tests have its statements")]


def test_gpus(client: Client) -> None:
    """Given a GPU cloud, then each GPU has its pool, memory and list prices by tier."""
    gpus = client.catalog.gpus()
    record = gpus["NVIDIA GeForce RTX 4090"].record
    assert (record.provider, record.pool, record.memory_gb) == ("runpod", "ADA_24", 24)
    assert set(record.prices_per_hour_usd) == {"secure", "community", "serverless"}
    assert all(usd > 0 for gpu in gpus for usd in gpu.record.prices_per_hour_usd.values())
    assert client.compute.create("easel", gpus[0].id).error is None
    assert client.endpoints.create(gpu_ids=gpus[0].record.pool).status == "ready"


def test_gpus_need_a_connection(bare: Client) -> None:
    """Given no connection to a GPU cloud, then the error names the provider to register."""
    with pytest.raises(RequestError, match="register runpod"):
        bare.catalog.gpus()


def test_models(bare: Client) -> None:
    """Given no connection, then every vendor's models have their prices and source."""
    models = bare.catalog.models()
    built_in = {"openai", "anthropic", "google", "minimax", "elevenlabs", "aws", "runpod"}
    plugins = {name for name, vendor in load_vendors().items() if vendor.label is None}
    assert built_in | plugins == {model.record.provider for model in models}
    assert len({model.id for model in models}) == len(models)
    assert all(model.record.source for model in models)
    assert all(model.record.as_of for model in models if model.record.provider in built_in)
    default = models["minimax/text/MiniMax-M3"].record
    assert (default.model, default.kind, default.default) == ("MiniMax-M3", "text", True)
    assert default.prices_usd["input_tokens"] == pytest.approx(0.30e-6)
    # An unknown price is left out, because 0 would mean free.
    assert models["minimax/clone/voice-clone"].record.prices_usd == {}


def test_models_have_tiers_bounds_and_an_end(bare: Client) -> None:
    """Given the vendors' publications, then models have tiers, batch shares, bounds and ends."""
    models = bare.catalog.models()
    haiku = models["anthropic/text/claude-haiku-5-5"].record
    (tier,) = haiku.price_tiers
    assert tier.above_input_tokens == 100_000
    assert tier.prices_usd["input_tokens"] == pytest.approx(0.50e-6)
    assert haiku.batch_share == 0.5
    assert "max_tokens" in (haiku.bound or "")
    ending = models["google/text/gemini-2.5-flash"].record
    assert (str(ending.ends), ending.successor) == ("2026-12-01", "gemini-3.5-flash-lite")
    # Billed by tokens at the vendor's own endpoint, by seconds at an endpoint of the caller.
    assert "max_tokens" in (models["runpod/text/qwen3-32b-awq"].record.bound or "")
    assert "second" in (models["runpod/text/served-by-the-endpoint"].record.bound or "")
