"""The index of runs by cost, and its columns in each database's SQL.

A list by a range of costs is in the order of ids, which no index of exact costs has. So costs are
indexed by *step*, their first two digits: the runs of a step are in the order of their ids, and the
few steps of a range are merged. The index has the exact cost, too, for the steps at both ends.
"""

from typing import Final

from toolkit.store.dialects import DatabaseKind

# The highest step covers all higher costs, too; a cost below the lowest step counts as zero.
_HIGHEST_COST: Final = "99000.0"
_HIGHEST_STEP: Final = "9.9e+04"
_LOWEST_STEP: Final = "0.0e+00"
_EXPONENTS: Final = range(-9, 5)
# An index must not depend on other functions, or a dump of the database could not be restored.
_POSTGRES_COST: Final = (
    r"CAST(CAST(replace(doc, '\u0000', '\ufffd') AS jsonb) ->> 'cost_usd' AS double precision)"
)
_HEAD: Final = "LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE"
POSTGRES_COST_FUNCTIONS: Final = (
    f"CREATE FUNCTION get_cost(doc text) RETURNS double precision {_HEAD}"
    f" AS $$ SELECT {_POSTGRES_COST} $$",
    f"CREATE FUNCTION get_cost_step(doc text) RETURNS text {_HEAD}"
    " AS $$ SELECT ltrim(to_char(round(CAST("
    f"least({_POSTGRES_COST}, {_HIGHEST_COST}) AS numeric), 9), '9.9EEEE')) $$",
)
_COST: Final[dict[DatabaseKind, str]] = {
    "sqlite": "json_extract({doc}, '$.cost_usd')",
    "postgresql": "get_cost({doc})",
}
_COST_STEP: Final[dict[DatabaseKind, str]] = {
    "sqlite": "printf('%.1e',"
    f" round(min(json_extract({{doc}}, '$.cost_usd'), {_HIGHEST_COST}), 9))",
    "postgresql": '(get_cost_step({doc}) COLLATE "C")',
}
# A little more than half a unit of the last digit, as steps are rounded.
_HALF_STEP: Final = 0.0501
_LEAST_HALF_STEP: Final = 0.501e-9


def build_cost(kind: DatabaseKind, doc: str) -> str:
    """Build the expression for the cost in a document."""
    return _COST[kind].format(doc=doc)


def build_cost_step(kind: DatabaseKind, doc: str) -> str:
    """Build the expression for the step of the cost in a document."""
    return _COST_STEP[kind].format(doc=doc)


def build_cost_index(kind: DatabaseKind) -> str:
    """Build the statement that creates the index."""
    return (
        "CREATE INDEX ix_jobs_cost ON jobs (account_id,"
        f" {build_cost_step(kind, 'doc')}, run_id, {build_cost(kind, 'doc')})"
        " WHERE run_id IS NOT NULL"
    )


def is_step_in_range(step: str, lowest: float | None, highest: float | None) -> bool:
    """Return whether a cost of a step may be in a range.

    >>> is_step_in_range("1.2e-03", 0.00124, None), is_step_in_range("1.2e-03", None, 0.001)
    (True, False)
    """
    cost = float(step)
    digit = float(f"1e{step.partition('e')[2]}") if cost else 0.0
    half = max(_HALF_STEP * digit, _LEAST_HALF_STEP)
    if step == _HIGHEST_STEP and lowest is not None:
        lowest = min(lowest, cost)
    return (lowest is None or cost + half >= lowest) and (highest is None or cost - half <= highest)


def list_steps(lowest: float | None, highest: float | None) -> list[str]:
    """List the steps of a range of costs.

    >>> list_steps(0.00121, 0.00139)
    ['1.2e-03', '1.3e-03', '1.4e-03']
    >>> list_steps(1e6, None)
    ['9.9e+04']
    """
    steps = [
        _LOWEST_STEP,
        *(f"{digits / 10}e{exponent:+03}" for exponent in _EXPONENTS for digits in range(10, 100)),
    ]
    return [step for step in steps if is_step_in_range(step, lowest, highest)]
