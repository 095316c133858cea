"""Resolution of pointers to secrets, with errors that reveal nothing else."""

import pytest

from toolkit.contract.errors import ErrorCode, WorkError
from toolkit.secrets import ChainResolver, EnvironmentResolver, MappingResolver

VALUE = "sk-test-5d41402abc4b2a76"
ENVIRON = {
    "MINIMAX_API_KEY": VALUE,
    "OTHER": "hidden",
    "BLANK": " \n",
    "PADDED": f"  {VALUE}\n",
    "TOOLKIT_DATA_DIR": "somewhere",
    "toolkit_data_dir": "somewhere",
}
ENVIRONMENT = "environment"


@pytest.mark.parametrize("name", ["MINIMAX_API_KEY", "PADDED"])
@pytest.mark.parametrize("is_restricted", [False, True])
async def test_reads_a_variable(name: str, is_restricted: bool) -> None:
    """Given a variable that may be read, then its value is returned without surrounding blanks."""
    resolver = EnvironmentResolver({name} if is_restricted else None, ENVIRON)
    assert await resolver.resolve(ENVIRONMENT, name) == VALUE


@pytest.mark.parametrize(
    ("connection_type", "name"),
    [
        (ENVIRONMENT, "OTHER"),
        (ENVIRONMENT, "NOT_THERE"),
        (ENVIRONMENT, "BLANK"),
        (ENVIRONMENT, "TOOLKIT_DATA_DIR"),
        (ENVIRONMENT, "toolkit_data_dir"),
        (ENVIRONMENT, ""),
        ("aws_secrets_manager", "MINIMAX_API_KEY"),
    ],
)
async def test_rejections_reveal_no_reason(connection_type: str, name: str) -> None:
    """Given a name that is unknown, blank, reserved or not allowed, then the error is the same."""
    allowed = frozenset(ENVIRON) - {"OTHER"}
    with pytest.raises(WorkError) as caught:
        await EnvironmentResolver(allowed, ENVIRON).resolve(connection_type, name)
    with pytest.raises(WorkError) as unknown:
        await EnvironmentResolver(None, {}).resolve(ENVIRONMENT, "WHATEVER")
    assert caught.value.code is ErrorCode.SECRET_UNRESOLVED
    assert str(caught.value) == str(unknown.value)
    assert caught.value.__cause__ is None


async def test_never_resolves_the_toolkits_own_variables() -> None:
    """Given an engine that allows every name, then its own setting variables stay closed."""
    with pytest.raises(WorkError):
        await EnvironmentResolver(None, ENVIRON).resolve(ENVIRONMENT, "TOOLKIT_DATA_DIR")


async def test_reads_a_rotated_key_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a variable that changes, then each call reads its current value."""
    resolver = EnvironmentResolver(frozenset({"A_KEY"}))
    for value in ("first", "second"):
        monkeypatch.setenv("A_KEY", value)
        assert await resolver.resolve(ENVIRONMENT, "A_KEY") == value


async def test_mapping_resolves_only_its_own_names() -> None:
    """Given a mapping, then it resolves the names it had at first, and no environment variable."""
    values = {"A_KEY": "sandbox"}
    resolver = MappingResolver(values)
    values["B_KEY"] = "later"
    assert await resolver.resolve(ENVIRONMENT, "A_KEY") == "sandbox"
    for name in ("B_KEY", "PATH", "HOME"):
        with pytest.raises(WorkError):
            await resolver.resolve(ENVIRONMENT, name)


async def test_chain_uses_the_first_resolver_with_the_secret() -> None:
    """Given resolvers, then the first with the secret answers; without any, it is unresolved."""
    chain = ChainResolver(MappingResolver({"A": "1"}), MappingResolver({"A": "2", "B": "3"}))
    assert await chain.resolve(ENVIRONMENT, "A") == "1"
    assert await chain.resolve(ENVIRONMENT, "B") == "3"
    for resolver in (chain, ChainResolver()):
        with pytest.raises(WorkError, match="SECRET_UNRESOLVED"):
            await resolver.resolve(ENVIRONMENT, "C")


def test_repr_shows_no_secret() -> None:
    """Given any resolver, then its repr has neither names nor values."""
    resolver = ChainResolver(MappingResolver({"A_KEY": VALUE}), EnvironmentResolver(None, ENVIRON))
    assert repr(resolver) == "ChainResolver(MappingResolver(), EnvironmentResolver())"
