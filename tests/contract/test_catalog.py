"""The catalogue: what can be rented, and what each model costs."""

import pytest

from toolkit import Client, RequestError


def test_gpus(client: Client) -> None:
    """Given a GPU cloud, then each GPU has its pool, memory and list prices by tier."""
    gpus = client.catalog.gpus()
    listed = gpus["NVIDIA GeForce RTX 4090"].record
    assert (listed.provider, listed.pool, listed.memory_gb) == ("runpod", "ADA_24", 24)
    assert set(listed.prices_per_hour_usd) == {"secure", "community", "serverless"}
    assert all(usd > 0 for gpu in gpus for usd in gpu.record.prices_per_hour_usd.values())
    compute = client.compute.create("easel", gpus[0].id)
    assert compute.error is None
    assert client.endpoints.create(gpu_ids=gpus[0].record.pool).status == "ready"


def test_models(bare: Client) -> None:
    """Given no connection at all, then every vendor's models have their prices and source."""
    models = bare.catalog.models()
    assert {"openai", "anthropic", "google", "minimax", "elevenlabs", "aws", "runpod"} == {
        model.record.provider for model in models
    }
    assert len({model.id for model in models}) == len(models)
    assert all(model.record.as_of and model.record.source for model in models)
    default = models["minimax/text/MiniMax-M3"].record
    assert (default.model, default.kind, default.default) == ("MiniMax-M3", "text", True)
    assert default.prices_usd["input_tokens"] == pytest.approx(0.30e-6)
    # What is not known is left out, never 0.
    assert models["minimax/text/MiniMax-M2.7"].record.prices_usd == {}


def test_gpus_without_a_connection(bare: Client) -> None:
    """Given no connection to a GPU cloud, then its catalogue is refused."""
    with pytest.raises(RequestError, match="register runpod") as refused:
        bare.catalog.gpus()
    assert refused.value.code.name == "CREDENTIALS_MISSING"
