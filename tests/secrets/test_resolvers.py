"""From pointers to secrets: what is resolved, and that nothing else is told."""

import pytest

from toolkit.contract.errors import ErrorCode, WorkError
from toolkit.secrets import ChainResolver, EnvironmentResolver, MappingResolver

VALUE = "sk-test-5d41402abc4b2a76"
ENVIRON = {
    "MINIMAX_API_KEY": VALUE,
    "OTHER": "hidden",
    "EMPTY": "",
    "BLANK": " \n",
    "PADDED": f"  {VALUE}\n",
    "TOOLKIT_DATA_DIR": "somewhere",
    "toolkit_data_dir": "somewhere",
}
ENVIRONMENT = "environment"


@pytest.mark.parametrize("name", ["MINIMAX_API_KEY", "PADDED"])
async def test_variable_is_read(name: str) -> None:
    """Given a variable that may be read, its value comes back without blanks around it."""
    for allowed in (None, frozenset({name})):
        resolver = EnvironmentResolver(allowed, ENVIRON)
        assert await resolver.resolve(ENVIRONMENT, name) == VALUE


@pytest.mark.parametrize(
    ("connection_type", "name"),
    [
        (ENVIRONMENT, "OTHER"),
        (ENVIRONMENT, "NOT_THERE"),
        (ENVIRONMENT, "EMPTY"),
        (ENVIRONMENT, "BLANK"),
        (ENVIRONMENT, "TOOLKIT_DATA_DIR"),
        (ENVIRONMENT, "toolkit_data_dir"),
        (ENVIRONMENT, ""),
        ("aws_secrets_manager", "MINIMAX_API_KEY"),
        ("", "MINIMAX_API_KEY"),
    ],
)
async def test_every_refusal_is_the_same(connection_type: str, name: str) -> None:
    """Given a name that is unknown, empty, ours or not allowed, the words do not tell which."""
    allowed = frozenset(ENVIRON) - {"OTHER"}
    with pytest.raises(WorkError) as caught:
        await EnvironmentResolver(allowed, ENVIRON).resolve(connection_type, name)
    with pytest.raises(WorkError) as unknown:
        await EnvironmentResolver(None, {}).resolve(ENVIRONMENT, "WHATEVER")
    assert caught.value.code is ErrorCode.SECRET_UNRESOLVED
    assert str(caught.value) == str(unknown.value)
    assert caught.value.__cause__ is None


async def test_own_settings_are_nobodys_key() -> None:
    """Given an engine that allows every name, its own settings stay closed."""
    with pytest.raises(WorkError):
        await EnvironmentResolver(None, ENVIRON).resolve(ENVIRONMENT, "TOOLKIT_DATA_DIR")


async def test_rotated_key_works_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given the process's environment, a variable is read anew each time."""
    resolver = EnvironmentResolver(frozenset({"A_KEY"}))
    for value in ("first", "second"):
        monkeypatch.setenv("A_KEY", value)
        assert await resolver.resolve(ENVIRONMENT, "A_KEY") == value


async def test_mapping_knows_its_own_names_alone() -> None:
    """Given a mapping, its names resolve as they were, and the environment is out of reach."""
    values = {"A_KEY": "sandbox"}
    resolver = MappingResolver(values)
    values["B_KEY"] = "later"
    assert await resolver.resolve(ENVIRONMENT, "A_KEY") == "sandbox"
    for name in ("B_KEY", "PATH", "HOME"):
        with pytest.raises(WorkError):
            await resolver.resolve(ENVIRONMENT, name)


async def test_chain_takes_the_first_that_knows() -> None:
    """Given several resolvers, the first that has the secret answers; none ends as unresolved."""
    chain = ChainResolver(
        MappingResolver({"A": "one"}), MappingResolver({"A": "two", "B": "three"})
    )
    assert await chain.resolve(ENVIRONMENT, "A") == "one"
    assert await chain.resolve(ENVIRONMENT, "B") == "three"
    for nothing in (chain, ChainResolver()):
        with pytest.raises(WorkError) as caught:
            await nothing.resolve(ENVIRONMENT, "C")
        assert caught.value.code is ErrorCode.SECRET_UNRESOLVED


def test_no_repr_shows_a_secret() -> None:
    """Given any resolver, its repr has neither names nor values."""
    resolver = ChainResolver(MappingResolver({"A_KEY": VALUE}), EnvironmentResolver(None, ENVIRON))
    assert repr(resolver) == "ChainResolver(MappingResolver(), EnvironmentResolver())"
