"""Provider connections: pointers to secrets that the caller keeps."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from toolkit.contract.base import ErrorInfo, Record, Request, Timestamp
from toolkit.contract.choices import ConnectionType
from toolkit.contract.ids import Prefix, build_id_pattern
from toolkit.contract.key_shapes import looks_like_key

Everyone = Literal["all"]
AccountId = Annotated[str, Field(pattern=build_id_pattern(Prefix.ACCOUNT))]
# The accounts that share a connection, or all.
Members = Everyone | Annotated[list[AccountId], Field(min_length=1, max_length=100)]

_VARIABLE_PATTERN = re.compile(r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")
_SECRET_NAME_PATTERN = re.compile(
    r"^(arn:aws[\w-]*:secretsmanager:[\w-]+:\d{12}:secret:)?[\w/+=.@!-]{1,512}$"
)


def is_variable_name(text: str) -> bool:
    """Check whether a text has the form of a variable's name."""
    return _VARIABLE_PATTERN.fullmatch(text) is not None


def _check_no_key(text: str) -> str:
    if looks_like_key(text):
        raise ValueError("looks like a key itself: give the name of the variable that holds it")
    return text


class ConnectionCreate(Request):
    """`POST /v1/providers/connections`.

    Attributes:
        share: other accounts that may use it, or `all`, if an operator creates it.
    """

    provider: str = Field(min_length=1, max_length=64)
    connection_type: ConnectionType
    secret_ref: Annotated[str, Field(min_length=1, max_length=600), AfterValidator(_check_no_key)]
    share: Members | None = None

    @model_validator(mode="after")
    def _check_secret_ref(self) -> "ConnectionCreate":
        form = _VARIABLE_PATTERN if self.connection_type == "environment" else _SECRET_NAME_PATTERN
        if not form.fullmatch(self.secret_ref):
            # The value is not echoed: it may be a secret pasted in the wrong place.
            raise ValueError(f"secret_ref is not a name that `{self.connection_type}` can have")
        return self


class ConnectionShare(Request):
    """`POST /v1/providers/connections/{id}/share`: other accounts whose work may use it.

    Attributes:
        accounts: ids of accounts, or `all`, which includes accounts opened later.
    """

    accounts: Members


class ConnectionTest(Record):
    """`POST /v1/providers/connections/{id}/test`: whether a connection would work.

    Attributes:
        resolved: whether the pointer leads to a secret.
        accepted: whether the vendor accepts it; null if the vendor was not called, or did not say.
        took_ms: vendor's response time, in milliseconds.
        error: fault of the connection, with the next step.
        models: models that the vendor lists, if the test asked for them; at most 200.
        next_step: how to use a listed model, if the list lacks the default model.
    """

    connection_id: str
    provider: str
    resolved: bool
    accepted: bool | None = None
    took_ms: int | None = None
    error: ErrorInfo | None = None
    models: list[str] = []
    next_step: str = ""


class Connection(Record):
    """A registered connection.

    Attributes:
        secret_ref: empty for a connection that another account shares.
        overbilled: its models that billed more than their reservation. None of them is used under a
            budget until somebody confirms it (`POST /v1/providers/connections/{id}/trust`).
        warning: fault that a free test found at creation, only in the response to the creation; the
            connection is stored all the same.
        shared: whether it belongs to another account, which shares it.
        shared_with: accounts that it is shared with, or `all`; only the owner sees it.
    """

    id: str
    provider: str
    connection_type: ConnectionType
    secret_ref: str
    created_at: Timestamp
    overbilled: list[str] = []
    warning: ErrorInfo | None = None
    shared: bool = False
    shared_with: Everyone | list[str] | None = None
    deleted: bool = False
