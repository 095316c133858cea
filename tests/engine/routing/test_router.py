"""The router, as a pure function of a pool of providers."""

from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.contract.base import now
from toolkit.contract.connections import Connection
from toolkit.contract.jobs import Options
from toolkit.engine import Registry
from toolkit.engine.ranking import MAX_RANKINGS, RankedCandidate, Ranking
from toolkit.engine.routing.connection_health import HealthSnapshot, Latency
from toolkit.engine.routing.provider_pool import MAX_CONNECTIONS, MAX_TABLES, ProviderPool
from toolkit.engine.routing.router import find_soonest_s, route
from toolkit.plugins import Model, TextRequest, Vendor

REGISTRY = Registry.load()
CAPABILITY = REGISTRY.require("llm.generate")
TEXT = TextRequest(prompt="Why do tides turn?", max_tokens=100)
POLICIES = ("cost", "latency", "quality", "balanced")


def vendor(name: str) -> Vendor:
    """Build a vendor with a name."""
    return Vendor(name, name, "X_KEY", MappingProxyType({}), MappingProxyType({}), ())


def model(name: str, price: float | None, quality: int = 1) -> Model:
    """Build a model with a price in dollars a token, if it is known."""
    units = () if price is None else ("input_tokens", "output_tokens")
    prices = dict.fromkeys(units, Decimal(str(price or 0)))
    return Model(name, "text", prices, quality=quality)


def connection(name: str, suffix: str = "") -> Connection:
    """Build a connection to a vendor."""
    return Connection(
        id=f"con_{name}{suffix}",
        provider=name,
        connection_type="environment",
        secret_ref="X_KEY",
        created_at=now(),
    )


snapshots = st.builds(
    HealthSnapshot,
    state=st.sampled_from(["closed", "half_open"]),
    wait_s=st.sampled_from([0.0, 0.0, 0.0, 2.5]),
    reason=st.just("left alone"),
    latency=st.one_of(
        st.just({}),
        st.floats(1, 5000).map(lambda p50: {"m0": Latency(p50, 2 * p50), "m1": Latency(p50, p50)}),
    ),
    error_rate=st.one_of(st.none(), st.floats(0, 1)),
)
prices = st.one_of(st.none(), st.sampled_from([0.0, 1e-7, 1e-6, 2e-6, 5e-5]))


@st.composite
def pools(draw: st.DrawFn) -> ProviderPool:
    """Draw vendors with one or two models each, of which some are connected, in any health."""
    names = draw(st.lists(st.sampled_from(["minimax", "a", "b", "c"]), min_size=1, unique=True))
    connected = [name for name in names if draw(st.booleans())]
    models = {
        name: [
            model(f"m{i}", draw(prices), draw(st.integers(1, 3)))
            for i in range(draw(st.integers(1, 2)))
        ]
        for name in names
    }
    failed = [f"con_{name}" for name in connected if draw(st.integers(0, 5)) == 0]
    return ProviderPool(
        vendors=[vendor(name) for name in names],
        models=models,
        connections={name: [connection(name)] for name in connected},
        health={f"con_{name}": draw(snapshots) for name in connected},
        failed_ids=frozenset(failed),
    )


def rank(
    pool: ProviderPool, policy: str | None = None, pin: object = None, max_tokens: int = 100
) -> Ranking:
    """Rank the candidates of a text."""
    options = Options.model_validate({"optimize_for": policy, "provider": pin})
    text = replace(TEXT, max_tokens=max_tokens)
    return route(CAPABILITY, options, text, pool, with_others=True)


def list_usable(routing: Ranking) -> list[RankedCandidate]:
    """List the candidates that may be called, in order."""
    return [c for c in routing.candidates if not c.excluded]


@given(pools(), st.sampled_from([None, *POLICIES]), st.sampled_from([None, "a", "minimax"]))
def test_keeps_its_rules_for_any_pool(
    pool: ProviderPool, policy: str | None, pin: str | None
) -> None:
    """Given any pool, then pins hold, each candidate has a reason, and scores decide the order."""
    routing = rank(pool, policy, pin)
    assert len(routing.candidates) == sum(len(models) for models in pool.models.values())
    usable = list_usable(routing)
    assert routing.candidates[: len(usable)] == usable
    for candidate in routing.candidates:
        assert candidate.reason
        assert 0 <= (candidate.score or 0) <= 1
    for candidate in usable:
        assert pin in (None, candidate.provider)
        assert pool.is_connected(candidate.provider)
        assert candidate.connection_id not in pool.failed_ids
        assert pool.health[candidate.connection_id or ""].wait_s == 0
    if policy is not None:
        scores = [c.score or 0.0 for c in usable]
        assert scores == sorted(scores, reverse=True)
    wait_s = find_soonest_s(routing, pool)
    assert wait_s is None or wait_s > 0
    assert rank(pool, policy, pin) == routing


listed_names = st.lists(
    st.sampled_from(
        [f"{owner}{model}" for owner in ("a", "b", "con_b", "c") for model in ("", "/m0", "/m1")]
    ),
    min_size=1,
    unique=True,
)


@given(pools(), st.sampled_from([None, *POLICIES]), listed_names, st.none() | listed_names)
def test_lists_decide_which_candidates_remain(
    pool: ProviderPool, policy: str | None, ignore: list[str], only: list[str] | None
) -> None:
    """Given any lists, then no other candidate is called, and each list names its exclusions."""
    lists = {"ignore": ignore} if only is None else {"only": only, "ignore": ignore}
    routing = rank(pool, policy, lists)
    assert routing.policy == (policy or "default")
    listed: dict[tuple[str, str | None], bool] = {}
    for c in routing.candidates:
        owners = [owner for owner in (c.provider, c.connection_id) if owner]
        names = {*owners, *(f"{owner}/{c.model}" for owner in owners)}
        is_left = only is None or bool(names & set(only))
        is_ignored = bool(names & set(ignore))
        listed[c.provider, c.model] = is_left and not is_ignored
        assert is_left or c.reason == "not in `only`"
        assert not (is_left and is_ignored) or c.reason == "excluded by `ignore`"
        assert listed[c.provider, c.model] or (c.excluded and not c.allowed)
    for provider in {c.provider for c in routing.candidates}:
        may_serve = any(left for (owner, _), left in listed.items() if owner == provider)
        is_healthy = all(
            c.connected and c.healthy and c.connection_id not in pool.failed_ids
            for c in routing.candidates
            if c.provider == provider
        )
        is_chosen = any(c.provider == provider for c in list_usable(routing))
        assert is_chosen == (may_serve and is_healthy)


def is_dominated(worse: RankedCandidate, better: RankedCandidate) -> bool:
    """Return whether a candidate is worse in a property and better in none, all of them known."""
    pairs = [
        (worse.estimated_cost_usd, better.estimated_cost_usd),
        (worse.latency_p50_ms, better.latency_p50_ms),
        (-(worse.quality or 0), -(better.quality or 0)),
        (worse.error_rate or 0.0, better.error_rate or 0.0),
    ]
    if any(value is None for pair in pairs for value in pair):
        return False
    return all(w >= b for w, b in pairs) and any(w > b for w, b in pairs)  # type: ignore[operator]


@given(pools(), st.sampled_from(POLICIES))
def test_scores_dominated_candidates_lower(pool: ProviderPool, policy: str) -> None:
    """Given any pool and policy, then no candidate scores above a candidate that dominates it."""
    usable = list_usable(rank(pool, policy))
    for worse in usable:
        for better in usable:
            if is_dominated(worse, better):
                assert (worse.score or 0) <= (better.score or 0)


def build_pool(**models: Model) -> ProviderPool:
    """Build a pool of connected vendors with one model each."""
    return ProviderPool(
        vendors=[vendor(name) for name in models],
        models={name: [model] for name, model in models.items()},
        connections={name: [connection(name)] for name in models},
    )


@pytest.mark.parametrize(
    ("policy", "prices", "order"),
    [
        ("cost", {"a": None, "b": 1e-9, "c": 0.0}, "c b a"),
        *(
            (policy, dict.fromkeys(("z", "b", "minimax"), 1e-6), "minimax b z")
            for policy in POLICIES
        ),
        (None, {"a": 0.0, "minimax": 1e-3}, "minimax a"),
    ],
)
def test_orders_vendors_by_policy_default_and_name(
    policy: str | None, prices: dict[str, float | None], order: str
) -> None:
    """Given prices and a policy, then vendors are in this order, with unknown prices last."""
    pool = build_pool(**{name: model("m", price) for name, price in prices.items()})
    routing = rank(pool, policy)
    assert [c.provider for c in routing.candidates] == order.split()
    for candidate in routing.candidates:
        assert (candidate.estimated_cost_usd is None) == (prices[candidate.provider] is None)


def test_a_policy_considers_every_model() -> None:
    """Given a vendor with two models, then a policy may choose either; otherwise the default is."""
    pool = build_pool(minimax=model("m", 1e-6))
    pool.models["minimax"].append(model("best", 1e-3, quality=3))  # type: ignore[attr-defined]
    assert list_usable(rank(pool))[0].model == "m"
    best = list_usable(rank(pool, "quality"))[0]
    assert (best.model, best.reason) == ("best", "connected; the highest quality tier")


def build_pool_with_connections(**states: HealthSnapshot) -> ProviderPool:
    """Build a pool of a vendor with a connection in each state, and of a more expensive vendor."""
    pool = build_pool(minimax=model("m", 1e-6), other=model("m", 1e-3))
    connections = [connection("minimax", suffix) for suffix in states]
    health = {f"con_minimax{suffix}": state for suffix, state in states.items()}
    return replace(pool, connections={**pool.connections, "minimax": connections}, health=health)


WELL = HealthSnapshot()
FAILING = HealthSnapshot(error_rate=1.0)
REJECTED = replace(WELL, wait_s=3.0, reason="left alone")


@pytest.mark.parametrize(
    ("states", "order"),
    [
        pytest.param({"_new": WELL, "_old": WELL}, ["_new", "_old"], id="newest-of-equals"),
        pytest.param({"_new": FAILING, "_old": WELL}, ["_old", "_new"], id="healthiest"),
        pytest.param({"_new": REJECTED, "_old": FAILING}, ["_old", "_new"], id="may-be-called"),
        pytest.param(
            {"_new": HealthSnapshot(unresolved=True), "_old": WELL},
            ["_old", "_new"],
            id="has-a-secret",
        ),
        pytest.param(
            {"_new": HealthSnapshot(state="half_open"), "_old": HealthSnapshot(error_rate=0.4)},
            ["_old", "_new"],
            id="breaker-closed",
        ),
    ],
)
@pytest.mark.parametrize("policy", [None, *POLICIES])
def test_ranks_every_connection_of_a_vendor(
    states: dict[str, HealthSnapshot], order: list[str], policy: str | None
) -> None:
    """Given several connections of a vendor, then all are listed, in their order of use."""
    pool = build_pool_with_connections(**states)
    mine = [c for c in rank(pool, policy).candidates if c.provider == "minimax"]
    expected = [f"con_minimax{suffix}" for suffix in order]
    assert sorted(c.connection_id or "" for c in mine) == sorted(expected)
    usable = [c.connection_id for c in mine if not c.excluded]
    assert usable == [name for name in expected if pool.health[name].wait_s == 0]
    assert all(c.reason for c in mine)
    assert len({c.reason for c in mine}) == len(mine), "each candidate has a reason of its own"


def test_tries_another_connection_before_another_vendor() -> None:
    """Given a connection that failed, then the vendor's other connection is next, then vendors."""
    pool = build_pool_with_connections(_new=WELL, _old=FAILING).exclude(
        frozenset({"con_minimax_new"})
    )
    for policy in (None, *POLICIES):
        first, second, *_ = rank(pool, policy).candidates
        assert first.connection_id == "con_minimax_old"
        assert second.provider == "other"


def test_considers_a_bounded_number_of_connections() -> None:
    """Given more connections than the maximum, then the healthiest are considered."""
    states = {f"_{i:02}": FAILING if i % 2 else WELL for i in range(3 * MAX_CONNECTIONS)}
    pool = build_pool_with_connections(**states)
    mine = [c for c in rank(pool).candidates if c.provider == "minimax"]
    assert len(mine) == MAX_CONNECTIONS
    assert {c.error_rate for c in mine} == {None}
    assert list_usable(rank(pool, pin="con_minimax_59"))[0].connection_id == "con_minimax_59"


@given(pools(), st.sampled_from([None, *POLICIES]))
def test_caches_the_ranking_of_equal_work(pool: ProviderPool, policy: str | None) -> None:
    """Given a pool, then equal work shares a ranking, and an equal pool ranks it the same."""
    first = rank(pool, policy)
    assert rank(pool, policy) is first
    assert rank(pool, policy, max_tokens=900) is not first
    assert rank(replace(pool, tables={}), policy) == first
    assert pool.exclude(frozenset({"con_other"})).tables == {}


def test_bounds_cached_tables_and_rankings() -> None:
    """Given many pins and sizes, then the caches stay within their bounds."""
    pool = ProviderPool([vendor("a")], {"a": [model("m", 1e-6)]}, {"a": [connection("a")]})
    for n in range(2 * MAX_TABLES):
        rank(pool, pin=f"p{n}")
    assert len(pool.tables) <= MAX_TABLES
    for n in range(MAX_RANKINGS + 2):
        rank(pool, max_tokens=n + 1)
    assert len(pool.rankings) <= MAX_RANKINGS
