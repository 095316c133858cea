"""Verification that vendors answer as the toolkit expects, by one cheapest call of each kind.

`checks` says what would be asked and asks it through the client, `answers` compares what came back,
member by member, with what the vendor's flow reads and with what the sandbox answers.
"""

from toolkit.verify.checks import Check, Report, verify

__all__ = ["Check", "Report", "verify"]
