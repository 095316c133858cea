"""Cassettes: answers of vendors, recorded once and replayed without a network or keys.

A cassette is one YAML file. Between the engine and the network stands a transport that records
successful answers (`record`), answers from the file alone (`replay`), or does either as needed
(`auto`).
"""

from toolkit.cassettes.cassette import Cassette, CassetteMode
from toolkit.cassettes.scrubbing import PLACEHOLDER
from toolkit.cassettes.transport import CassetteTransport

__all__ = ["PLACEHOLDER", "Cassette", "CassetteMode", "CassetteTransport"]
