"""Verification that vendors answer as the toolkit expects, by one cheapest call of each kind.

`checks` plans the calls and makes them through the client, `comparison` compares the answers,
member by member, with what the vendor's flow reads and with what the sandbox answers.
"""

from toolkit.verify.checks import Check, Report, verify

__all__ = ["Check", "Report", "verify"]
