"""`client.account`: the account, and the key that is used."""

from toolkit.client._replies import AsyncReply
from toolkit.client._resource_calls import AccountCalls
from toolkit.contract.account import AccountCreated, CallerAccount


class AsyncAccounts(AccountCalls[AsyncReply[AccountCreated], AsyncReply[CallerAccount]]):
    """`client.account`: open an account, or read your own."""
