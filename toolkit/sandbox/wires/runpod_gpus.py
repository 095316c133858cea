"""The simulated catalogue of GPUs: ids and pools as the vendor names them, prices as an example."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

DataCenter: TypeAlias = Literal[
    "EU-RO-1", "EU-CZ-1", "EU-NL-1", "US-KS-2", "US-GA-1", "US-TX-3", "CA-MTL-1"
]


@dataclass(frozen=True, slots=True)
class SimulatedGpu:
    """A kind of GPU; prices are US dollars per hour."""

    id: str
    pool: str
    memory: int
    secure: float
    community: float
    serverless: float


# Serverless prices follow the older documents' dollars per second, times 3600.
GPUS = (
    SimulatedGpu("NVIDIA RTX A4000", "AMPERE_16", 16, 0.25, 0.17, 0.576),
    SimulatedGpu("NVIDIA RTX A5000", "AMPERE_24", 24, 0.27, 0.16, 0.684),
    SimulatedGpu("NVIDIA GeForce RTX 3090", "AMPERE_24", 24, 0.46, 0.22, 0.684),
    SimulatedGpu("NVIDIA GeForce RTX 4090", "ADA_24", 24, 0.69, 0.34, 1.116),
    SimulatedGpu("NVIDIA A40", "AMPERE_48", 48, 0.40, 0.35, 1.224),
    SimulatedGpu("NVIDIA RTX A6000", "AMPERE_48", 48, 0.49, 0.33, 1.224),
    SimulatedGpu("NVIDIA L40S", "ADA_48_PRO", 48, 0.86, 0.79, 1.908),
    SimulatedGpu("NVIDIA A100 80GB PCIe", "AMPERE_80", 80, 1.64, 1.19, 2.736),
    SimulatedGpu("NVIDIA H100 80GB HBM3", "ADA_80_PRO", 80, 2.99, 2.69, 4.176),
    SimulatedGpu("NVIDIA H200", "HOPPER_141", 141, 3.99, 3.59, 5.58),
)
POOLS = tuple(dict.fromkeys(gpu.pool for gpu in GPUS))


def build_catalog() -> list[dict[str, Any]]:
    """Build the catalogue as the wire shows it."""
    return [
        {
            "id": gpu.id,
            "name": gpu.id.removeprefix("NVIDIA ").removeprefix("GeForce "),
            "pool": gpu.pool,
            "manufacturer": "NVIDIA",
            "memory": gpu.memory,
            "secure": True,
            "community": True,
            "maxCount": {"secure": 8, "community": 4},
            "price": {name: getattr(gpu, name) for name in ("secure", "community", "serverless")},
        }
        for gpu in GPUS
    ]
