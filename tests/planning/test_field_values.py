"""Values of fields: whatever an objective measures, the schema takes what becomes of it."""

from typing import Literal

from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from toolkit.capabilities import load_capabilities
from toolkit.contract.base import Request
from toolkit.planning.field_values import describe_fields, fill_measured_fields, fit_value
from toolkit.planning.reading.objective_reading import Measure
from toolkit.plugins import Capability


class Odd(Request):
    """A stranger's schema, with limits of every kind."""

    level: float | None = Field(default=None, gt=0, lt=1)
    size_px: int = Field(default=10, ge=5, le=100, multiple_of=5)
    tone: Literal["warm", "cold"] | None = None
    max_seconds: int = Field(default=30, description="how long it may take")
    tags: list[str] = Field(default=[])


NAMES = ("width", "height", "seed", "steps", "speed", "temperature", "max_tokens", "max_sources",
         "sources", "pace", "theme", "format", "words", "seconds", "shape")  # fmt: skip
VALUES = st.one_of(
    st.floats(allow_nan=True),
    st.integers(-(10**12), 10**12).map(float),
    st.sampled_from(["dark", "light", "svg", "square", "portrait", "3:4", "0:0", "slow", "x", ""]),
)
MEASURES = st.lists(st.builds(Measure, st.sampled_from(NAMES), VALUES), max_size=6)


@given(MEASURES, st.sampled_from(load_capabilities()))
def test_what_is_filled_is_valid(measures: list[Measure], capability: Capability) -> None:
    """Given any measures, then every field that they fill has a value that its schema takes."""
    notes: dict[str, None] = {}
    filled, left = fill_measured_fields(capability, measures, notes)
    model = capability.input_model
    for name, value in filled.items():
        model.__pydantic_validator__.validate_assignment(model.model_construct(), name, value)
    assert len(left) <= len(measures)


def test_a_strangers_limits_are_kept() -> None:
    """Given limits of every kind, then the nearest value within them is taken."""
    fields = describe_fields(Odd)
    assert fit_value(fields["size_px"], 12) == 10
    assert fit_value(fields["size_px"], 1) == 5
    assert fit_value(fields["size_px"], 1e9) == 100
    assert 0 < float(str(fit_value(fields["level"], 0))) < 0.01
    assert fit_value(fields["tone"], "COLD") == "cold"
    assert fit_value(fields["tone"], "blue") is None
    assert fit_value(fields["tags"], "one\ntwo") == ["one", "two"]
