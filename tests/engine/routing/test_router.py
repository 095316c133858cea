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


def find_chosen(routing: Ranking) -> RankedCandidate | None:
    """The candidate that is called first."""
    return next((c for c in routing.candidates if not c.excluded), None)


@given(worlds(), st.sampled_from([None, *POLICIES]), st.sampled_from([None, "a", "minimax"]))
def test_what_is_always_true(world: ProviderPool, policy: str | None, pin: str | None) -> None:
    """Given any world: pins are obeyed, what is dropped says why, the order is by score."""
    options = Options.model_validate({"optimize_for": policy, "provider": pin})
    routing = route(CAPABILITY, options, ASKED, world)
    assert len(routing.candidates) == sum(len(models) for models in world.models.values())
    kept = [c for c in routing.candidates if not c.excluded]
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
    assert route(CAPABILITY, options, ASKED, world) == routing


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
    options = Options.model_validate({"optimize_for": policy})
    kept = [c for c in route(CAPABILITY, options, ASKED, world).candidates if not c.excluded]
    for worse in kept:
        for better in kept:
            if is_dominated(worse, better):
                assert (worse.score or 0) <= (better.score or 0)


@given(worlds())
def test_cheapest_means_cheapest(world: ProviderPool) -> None:
    """Given any prices, when cost counts, then no known estimate is below the choice's."""
    routing = route(CAPABILITY, Options(optimize_for="cost"), ASKED, world)
    kept = [c for c in routing.candidates if not c.excluded]
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


def test_free_is_free_and_unknown_is_not() -> None:
    """Given a price of 0 and an unknown one, then 0 wins and the unknown is last."""
    world = build_pool(a=model("m", None), b=model("m", 1e-9), c=model("m", 0.0))
    routing = route(CAPABILITY, Options(optimize_for="cost"), ASKED, world)
    assert [c.provider for c in routing.candidates] == ["c", "b", "a"]
    assert [c.estimated_cost_usd is None for c in routing.candidates] == [False, False, True]


@pytest.mark.parametrize("policy", POLICIES)
def test_ties_go_to_the_default_provider_then_by_name(policy: str) -> None:
    """Given equals, then the capability's default provider is first, and the others by name."""
    world = build_pool(z=model("m", 1e-6), b=model("m", 1e-6), minimax=model("m", 1e-6))
    routing = route(CAPABILITY, Options.model_validate({"optimize_for": policy}), ASKED, world)
    assert [c.provider for c in routing.candidates] == ["minimax", "b", "z"]


def test_without_a_wish_the_default_provider_is_first() -> None:
    """Given a cheaper vendor, then the default provider leads while it is well."""
    world = build_pool(a=model("m", 0.0), minimax=model("m", 1e-3))
    first = find_chosen(route(CAPABILITY, Options(), ASKED, world))
    assert first is not None
    assert first.provider == "minimax"
    assert first.reason.startswith("connected; the default provider, before higher scores")
    alone = find_chosen(route(CAPABILITY, Options(), ASKED, build_pool(minimax=model("m", 1e-3))))
    assert alone is not None
    assert alone.reason == "connected; the default provider"


def test_a_wish_looks_at_every_model() -> None:
    """Given a vendor with two models, then a wish may take either, and no wish the default one."""
    world = build_pool(minimax=model("m", 1e-6))
    world.models["minimax"].append(model("best", 1e-3, quality=3))  # type: ignore[attr-defined]
    assert find_chosen(route(CAPABILITY, Options(), ASKED, world)).model == "m"  # type: ignore[union-attr]
    best = find_chosen(route(CAPABILITY, Options(optimize_for="quality"), ASKED, world))
    assert best is not None
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
    options = Options.model_validate({"optimize_for": policy})
    shown = route(CAPABILITY, options, ASKED, world).candidates
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
        options = Options.model_validate({"optimize_for": policy})
        first, second, *_ = route(CAPABILITY, options, ASKED, world).candidates
        assert first.connection_id == "con_minimax_old"
        assert second.provider == "other"


def test_a_pinned_connection_leaves_no_choice() -> None:
    """Given the pin of one connection, then the others of its vendor say why they are dropped."""
    world = build_pool_with_connections(_new=WELL, _old=FAILING)
    options = Options(provider="con_minimax_old")
    kept, *dropped = route(CAPABILITY, options, ASKED, world).candidates
    assert (kept.connection_id, kept.reason) == ("con_minimax_old", "pinned by the request")
    reasons = {c.provider: c.reason for c in dropped if c.excluded}
    assert reasons == {
        "minimax": "another connection is pinned",
        "other": "another provider is pinned",
    }


def test_a_record_shows_so_many_connections_at_most() -> None:
    """Given more connections than a record is to hold, then the healthiest are considered."""
    states = {f"_{i:02}": FAILING if i % 2 else WELL for i in range(3 * MAX_CONNECTIONS)}
    shown = route(CAPABILITY, Options(), ASKED, build_pool_with_connections(**states)).candidates
    mine = [c for c in shown if c.provider == "minimax"]
    assert len(mine) == MAX_CONNECTIONS
    assert {c.error_rate for c in mine} == {None}
    pinned = Options(provider="con_minimax_59")
    first = find_chosen(route(CAPABILITY, pinned, ASKED, build_pool_with_connections(**states)))
    assert first is not None
    assert first.connection_id == "con_minimax_59"


@given(worlds(), st.sampled_from([None, *POLICIES]))
def test_what_measures_the_same_is_ranked_once(world: ProviderPool, policy: str | None) -> None:
    """Given one pool, then equal work shares a ranking, and another pool ranks it the same."""
    options = Options.model_validate({"optimize_for": policy})
    first = route(CAPABILITY, options, ASKED, world)
    assert route(CAPABILITY, options, replace(ASKED), world) is first
    longer = replace(ASKED, prompt=ASKED.prompt * 9)
    assert route(CAPABILITY, options, longer, world) is not first
    assert route(CAPABILITY, options, ASKED, replace(world, tables={})) == first
    assert world.exclude(frozenset({"con_other"})).tables == {}


def test_tables_and_rankings_are_bounded() -> None:
    """Given many pins and many sizes, then no more are kept than there is room for."""
    world = ProviderPool([vendor("a")], {"a": [model("m", 1e-6)]}, {"a": [connection("a")]})
    for n in range(2 * MAX_TABLES):
        route(CAPABILITY, Options(provider=f"p{n}"), ASKED, world)
    assert len(world.tables) <= MAX_TABLES
    for n in range(MAX_RANKINGS + 2):
        route(CAPABILITY, Options(), replace(ASKED, max_tokens=n + 1), world)
    assert len(world.rankings) <= MAX_RANKINGS
