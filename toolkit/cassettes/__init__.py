"""Cassettes: answers of vendors, recorded once and replayed without a network or keys.

A cassette is one YAML file. A transport between the engine and the network uses it in one of three
modes. It records successful answers (`record`), answers from the file only (`replay`), or does
either as needed (`auto`).
"""

from toolkit.cassettes.cassette import Cassette, CassetteMode
from toolkit.cassettes.scrubbing import PLACEHOLDER
from toolkit.cassettes.transport import CassetteTransport

__all__ = ["PLACEHOLDER", "Cassette", "CassetteMode", "CassetteTransport"]
