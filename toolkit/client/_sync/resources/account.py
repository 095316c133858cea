# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.account`: the account, and the key that is used."""

from toolkit.client._replies import Reply
from toolkit.client._resource_calls import AccountCalls
from toolkit.contract.account import AccountCreated, CallerAccount


class Accounts(AccountCalls[Reply[AccountCreated], Reply[CallerAccount]]):
    """`client.account`: open an account, or read your own."""
