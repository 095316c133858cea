"""Verification that vendors answer as the toolkit expects, by one cheapest call of each kind.

`checks` plans the calls and makes them through the client. `comparison` compares the answers,
member by member, with the sandbox's answers and the members that the vendor's flow reads.
"""

from toolkit.verify.checks import Check, Report, verify

__all__ = ["Check", "Report", "verify"]
