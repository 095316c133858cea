"""Bedrock by region: the inference profile that is called, and its price."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from tests.vendors.conftest import TEXT, VENDORS, VendorDrive, flow, ok
from tests.vendors.test_wires import CONVERSED
from toolkit import Client
from toolkit.contract.catalog import CatalogModel
from toolkit.settings import Settings, VendorSettings

NOVA = "amazon.nova-2-lite-v1:0"
# Dollars per million tokens, input and output: the vendor's price list by region.
LISTED = {"global": ("0.30", "2.50"), "us": ("0.33", "2.75"), "eu": ("0.429", "3.597")}
REGIONS = {
    "us-east-1": "us",
    "us-west-2": "us",
    "eu-central-1": "eu",
    "ap-southeast-2": "global",
    "sa-east-1": "global",
}


def host(region: str) -> str:
    """Return Bedrock's URL in a region."""
    return f"https://bedrock-runtime.{region}.amazonaws.com"


def default_of(client: Client) -> CatalogModel:
    """Return the catalogue's entry of the default text model of aws."""
    rows = [CatalogModel.model_validate(model.to_dict()) for model in client.catalog.models()]
    (row,) = [row for row in rows if (row.provider, row.kind) == ("aws", "text") and row.default]
    return row


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("source", ["secret", "host"])
def test_region_decides_the_profile(drive: VendorDrive, region: str, source: str) -> None:
    """Given a region by the secret or the host, then its profile is called and reported."""
    secret = {"AccessKeyId": "AKID", "SecretAccessKey": "x", "SessionToken": "t"}
    base = VENDORS["aws"].base_urls["api"]
    if source == "secret":
        secret["Region"] = region
    else:
        base = host(region)
    running = flow("aws", TEXT, secret=json.dumps(secret), base_urls={"api": base})
    reply = drive(running, ok(CONVERSED))
    request = drive.requests[0]
    assert str(request.url).startswith(host(region))
    assert reply.model == f"{REGIONS[region]}.{NOVA}"
    assert request.url.raw_path == f"/model/{reply.model.replace(':', '%3A')}/converse".encode()
    assert f"/{region}/bedrock/aws4_request" in request.headers["authorization"]
    assert request.headers["x-amz-security-token"] == "t"


@pytest.mark.parametrize("model", [f"global.{NOVA}", "openai.gpt-oss-120b-1:0"])
def test_keeps_a_named_profile_or_a_model_without_profiles(drive: VendorDrive, model: str) -> None:
    """Given a model with its profile, or without any, then it is called by exactly that name."""
    drive(flow("aws", TEXT, model=model), ok(CONVERSED))
    assert drive.requests[0].url.path == f"/model/{model}/converse"


def test_reserves_the_dearest_profile_of_an_unknown_region(tmp_path: Path) -> None:
    """Given a region that only the secret may name, then the dearest profile is reserved."""
    with Client.local(settings=Settings(data_dir=tmp_path, sandbox=True)) as client:
        row = default_of(client)
        assert row.model == NOVA
        dearest = [Decimal(usd) / 1_000_000 for usd in LISTED["eu"]]
        assert row.prices_usd["input_tokens"] == pytest.approx(float(dearest[0]))
        assert row.prices_usd["output_tokens"] == pytest.approx(float(dearest[1]))
        run = client.runs.create("llm.generate", {"objective": "Tides"}, provider="aws").wait()
        job = client.jobs.get(run.record.job_id).record
        assert job.model == f"us.{NOVA}"
        input_usd, output_usd = (Decimal(usd) / 1_000_000 for usd in LISTED["us"])
        usage = job.usage
        cost = input_usd * int(usage["input_tokens"]) + output_usd * int(usage["output_tokens"])
        assert job.cost_source == "metered"
        assert job.cost_usd == pytest.approx(float(cost), abs=1e-9)
        assert job.reservation_usd > job.cost_usd


@pytest.mark.parametrize("region", [region for region in REGIONS if region != "us-east-1"])
def test_configured_host_has_the_price_of_its_region(tmp_path: Path, region: str) -> None:
    """Given a host that names its region, then the router uses the price of its profile."""
    vendors = {"aws": VendorSettings(base_urls={"api": host(region)})}
    settings = Settings(data_dir=tmp_path, sandbox=True, vendors=vendors)
    with Client.local(settings=settings) as client:
        row = default_of(client)
    input_usd, output_usd = LISTED[REGIONS[region]]
    assert row.model == f"{REGIONS[region]}.{NOVA}"
    assert row.prices_usd["input_tokens"] == pytest.approx(float(input_usd) / 1e6)
    assert row.prices_usd["output_tokens"] == pytest.approx(float(output_usd) / 1e6)
