"""`client.account`: the account, and the key that is used."""

from toolkit.client._area_calls import AccountCalls
from toolkit.client._replies import AsyncReply
from toolkit.contract.account import AccountCreated, CallerAccount


class AsyncAccounts(AccountCalls[AsyncReply[AccountCreated], AsyncReply[CallerAccount]]):
    """`client.account`."""
