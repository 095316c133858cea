"""The router, as a pure function of what it is told."""

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
ASKED = TextRequest(prompt="Why do tides turn?", max_tokens=100)
POLICIES = ("cost", "latency", "quality", "balanced")


def vendor(name: str) -> Vendor:
    """A vendor of which only the name matters here."""
    return Vendor(name, name, "X_KEY", MappingProxyType({}), MappingProxyType({}), ())


def model(name: str, price: float | None, quality: int = 1) -> Model:
    """A model at so many dollars a token."""
    each = {} if price is None else dict.fromkeys(("input_tokens", "output_tokens"), price)
    prices = {unit: Decimal(str(amount)) for unit, amount in each.items()}
    return Model(name, "text", prices, quality=quality)


def connection(name: str, suffix: str = "") -> Connection:
    """A connection to a vendor."""
    return Connection(
        id=f"con_{name}{suffix}",
        provider=name,
        connection_type="environment",
        secret_ref="X_KEY",
        created_at=now(),
    )


condition = st.builds(
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
price = st.one_of(st.none(), st.sampled_from([0.0, 1e-7, 1e-6, 2e-6, 5e-5]))


@st.composite
def worlds(draw: st.DrawFn) -> ProviderPool:
    """Some vendors, some connected, each with a model or two, in any condition."""
    names = draw(st.lists(st.sampled_from(["minimax", "a", "b", "c"]), min_size=1, unique=True))
    connected = [name for name in names if draw(st.booleans())]
    models = {
        name: [
            model(f"m{i}", draw(price), draw(st.integers(1, 3)))
            for i in range(draw(st.integers(1, 2)))
        ]
        for name in names
    }
    failed = [f"con_{name}" for name in connected if draw(st.integers(0, 5)) == 0]
    return ProviderPool(
        vendors=[vendor(name) for name in names],
        models=models,
        connections={name: [connection(name)] for name in connected},
        health={f"con_{name}": draw(condition) for name in connected},
        failed_ids=frozenset(failed),
    )


def rank(
    world: ProviderPool, policy: str | None = None, pin: str | None = None, max_tokens: int = 100
) -> Ranking:
    """Rank the candidates for a text."""
    options = Options.model_validate({"optimize_for": policy, "provider": pin})
    return route(CAPABILITY, options, replace(ASKED, max_tokens=max_tokens), world)


def list_kept(routing: Ranking) -> list[RankedCandidate]:
    """List the candidates that may be called, in order."""
    return [c for c in routing.candidates if not c.excluded]


@given(worlds(), st.sampled_from([None, *POLICIES]), st.sampled_from([None, "a", "minimax"]))
def test_what_is_always_true(world: ProviderPool, policy: str | None, pin: str | None) -> None:
    """Given any world: pins are obeyed, what is dropped says why, the order is by score."""
    routing = rank(world, policy, pin)
    assert len(routing.candidates) == sum(len(models) for models in world.models.values())
    kept = list_kept(routing)
    assert routing.candidates[: len(kept)] == kept
    for candidate in routing.candidates:
        assert candidate.reason
        assert 0 <= (candidate.score or 0) <= 1
    for candidate in kept:
        assert pin in (None, candidate.provider)
        assert world.is_connected(candidate.provider)
        assert candidate.connection_id not in world.failed_ids
        assert world.health[candidate.connection_id or ""].wait_s == 0
    if policy is not None:
        scores = [c.score or 0.0 for c in kept]
        assert scores == sorted(scores, reverse=True)
    wait_s = find_soonest_s(routing, world)
    assert wait_s is None or wait_s > 0
    # The same question has the same answer.
    assert rank(world, policy, pin) == routing


def is_dominated(worse: RankedCandidate, better: RankedCandidate) -> bool:
    """Tell whether one is worse in something and better in nothing, all of it known."""
    pairs = [
        (worse.estimated_cost_usd, better.estimated_cost_usd),
        (worse.latency_p50_ms, better.latency_p50_ms),
        (-(worse.quality or 0), -(better.quality or 0)),
        (worse.error_rate or 0.0, better.error_rate or 0.0),
    ]
    if any(value is None for pair in pairs for value in pair):
        return False
    return all(w >= b for w, b in pairs) and any(w > b for w, b in pairs)  # type: ignore[operator]


@given(worlds(), st.sampled_from(POLICIES))
def test_a_dominated_candidate_never_wins(world: ProviderPool, policy: str) -> None:
    """Given any world and wish, then nothing that is kept scores above one that beats it."""
    kept = list_kept(rank(world, policy))
    for worse in kept:
        for better in kept:
            if is_dominated(worse, better):
                assert (worse.score or 0) <= (better.score or 0)


@given(worlds())
def test_cheapest_means_cheapest(world: ProviderPool) -> None:
    """Given any prices, when cost counts, then no known estimate is below the choice's."""
    kept = list_kept(rank(world, "cost"))
    known = [c.estimated_cost_usd for c in kept if c.estimated_cost_usd is not None]
    if known:
        assert kept[0].estimated_cost_usd == min(known)


def build_pool(**models: Model) -> ProviderPool:
    """Connected vendors with one model each."""
    return ProviderPool(
        vendors=[vendor(name) for name in models],
        models={name: [one] for name, one in models.items()},
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
def test_orders_vendors_by_wish_then_default_then_name(
    policy: str | None, prices: dict[str, float | None], order: str
) -> None:
    """Given prices and a wish, then vendors are in this order, and unknown is not free."""
    routing = rank(build_pool(**{name: model("m", each) for name, each in prices.items()}), policy)
    assert [c.provider for c in routing.candidates] == order.split()
    for one in routing.candidates:
        assert (one.estimated_cost_usd is None) == (prices[one.provider] is None)


def test_says_why_the_default_provider_is_first() -> None:
    """Given a cheaper vendor or none, then the reason tells of it."""
    default = model("m", 1e-3)
    first = list_kept(rank(build_pool(a=model("m", 0.0), minimax=default)))[0]
    assert first.reason.startswith("connected; the default provider; scores count only")
    alone = list_kept(rank(build_pool(minimax=default)))[0]
    assert alone.reason == "connected; the default provider"


def test_a_wish_looks_at_every_model() -> None:
    """Given a vendor with two models, then a wish may take either, and no wish the default one."""
    world = build_pool(minimax=model("m", 1e-6))
    world.models["minimax"].append(model("best", 1e-3, quality=3))  # type: ignore[attr-defined]
    assert list_kept(rank(world))[0].model == "m"
    best = list_kept(rank(world, "quality"))[0]
    assert (best.model, best.reason) == ("best", "connected; the highest quality tier")


def build_pool_with_connections(**states: HealthSnapshot) -> ProviderPool:
    """One vendor with as many connections, the newest first, beside a vendor that costs more."""
    world = build_pool(minimax=model("m", 1e-6), other=model("m", 1e-3))
    pool = [connection("minimax", suffix) for suffix in states]
    known = {f"con_minimax{suffix}": state for suffix, state in states.items()}
    return replace(world, connections={**world.connections, "minimax": pool}, health=known)


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
def test_every_connection_of_a_vendor_is_weighed(
    states: dict[str, HealthSnapshot], order: list[str], policy: str | None
) -> None:
    """Given several connections of a vendor, then all are shown, in the order they are used."""
    world = build_pool_with_connections(**states)
    shown = rank(world, policy).candidates
    mine = [c for c in shown if c.provider == "minimax"]
    assert {c.connection_id for c in mine} == {f"con_minimax{suffix}" for suffix in order}
    kept = [c.connection_id for c in shown if not c.excluded and c.provider == "minimax"]
    expected = [f"con_minimax{suffix}" for suffix in order]
    assert kept == [name for name in expected if world.health[name].wait_s == 0]
    assert all(c.reason for c in mine)
    assert len({c.reason for c in mine}) == len(mine), "each says what is said of it alone"


def test_another_connection_comes_before_another_vendor() -> None:
    """Given a connection that failed this job, then the vendor's other one is next, then others."""
    world = build_pool_with_connections(_new=WELL, _old=FAILING).exclude(
        frozenset({"con_minimax_new"})
    )
    for policy in (None, *POLICIES):
        first, second, *_ = rank(world, policy).candidates
        assert first.connection_id == "con_minimax_old"
        assert second.provider == "other"


def test_a_pinned_connection_leaves_no_choice() -> None:
    """Given the pin of one connection, then the others of its vendor say why they are dropped."""
    world = build_pool_with_connections(_new=WELL, _old=FAILING)
    kept, *dropped = rank(world, pin="con_minimax_old").candidates
    assert (kept.connection_id, kept.reason) == ("con_minimax_old", "pinned by the request")
    reasons = {c.provider: c.reason for c in dropped if c.excluded}
    assert reasons == {
        "minimax": "another connection is pinned",
        "other": "another provider is pinned",
    }


def test_a_record_shows_so_many_connections_at_most() -> None:
    """Given more connections than a record is to hold, then the healthiest are considered."""
    states = {f"_{i:02}": FAILING if i % 2 else WELL for i in range(3 * MAX_CONNECTIONS)}
    world = build_pool_with_connections(**states)
    mine = [c for c in rank(world).candidates if c.provider == "minimax"]
    assert len(mine) == MAX_CONNECTIONS
    assert {c.error_rate for c in mine} == {None}
    assert list_kept(rank(world, pin="con_minimax_59"))[0].connection_id == "con_minimax_59"


@given(worlds(), st.sampled_from([None, *POLICIES]))
def test_what_measures_the_same_is_ranked_once(world: ProviderPool, policy: str | None) -> None:
    """Given one pool, then equal work shares a ranking, and another pool ranks it the same."""
    first = rank(world, policy)
    assert rank(world, policy) is first
    assert rank(world, policy, max_tokens=900) is not first
    assert rank(replace(world, tables={}), policy) == first
    assert world.exclude(frozenset({"con_other"})).tables == {}


def test_tables_and_rankings_are_bounded() -> None:
    """Given many pins and many sizes, then no more are kept than there is room for."""
    world = ProviderPool([vendor("a")], {"a": [model("m", 1e-6)]}, {"a": [connection("a")]})
    for n in range(2 * MAX_TABLES):
        rank(world, pin=f"p{n}")
    assert len(world.tables) <= MAX_TABLES
    for n in range(MAX_RANKINGS + 2):
        rank(world, max_tokens=n + 1)
    assert len(world.rankings) <= MAX_RANKINGS
