"""Grains: the round units of a number follow from the schema, and points follow their shares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpsynth.encoding import Codec
from dpsynth.encoding.grain import NONE, GrainedCoder, Grains, units_of
from dpsynth.schema import Schema
from dpsynth.schema.lattice import lattice_of_bounds


def schema(*fields: dict[str, Any]) -> Schema:
    size = {"value": 300, "basis": "report"}
    for field in fields:
        field.setdefault("dpsynth", {})["bounds_basis"] = "form"
    return Schema.from_dict(
        {
            "name": "grains",
            "fields": list(fields),
            "dpsynth": {"version": 1, "population": size, "rows": size},
        }
    )


def number(name: str, low: float, high: float, kind: str = "number", **more: Any) -> dict[str, Any]:
    constraints = {"minimum": low, "maximum": high, "required": True}
    return {"name": name, "type": kind, "constraints": constraints, **more}


@pytest.mark.parametrize(
    ("bounds", "step", "units"),
    [
        ((30, 250), None, (100, 50, 10, 5, 1)),  # in tenths: 10, 5, 1, a half and a tenth
        ((30, 250), 1, (10, 5, 1)),
        ((30, 250), 0.5, (100, 50, 10, 5)),
        ((0, 7), 0.1, (10, 5, 1)),  # a score has few whole values
        ((0, 400), 2, (10, 2)),
        ((1, 10), None, (1000, 500, 100, 50, 10, 5, 1)),
    ],
)
def test_units_are_round_and_each_divides_the_coarser(
    bounds: tuple[float, float], step: float | None, units: tuple[int, ...]
) -> None:
    found = units_of(lattice_of_bounds(*bounds, step=step))
    assert found == units
    assert all(coarse % fine == 0 for coarse, fine in zip(found[:-1], found[1:], strict=True))


def test_each_point_has_its_coarsest_unit_and_zero_and_bounds_have_none() -> None:
    codec = Codec(schema(number("change", -20, 30)))
    (grains,) = codec.grains
    assert isinstance(grains, Grains)
    lattice = codec.lattice("change")
    assert lattice is not None and lattice.decimals == 2
    places = {value: int(lattice.positions(np.array([value]))[0]) for value in (7, 6.5, 5.0, 0.01)}
    assert [grains.units[grains.of_points[place]] for place in places.values()] == [100, 50, 500, 1]
    ends = [0, lattice.points - 1, int(lattice.positions(np.array([0.0]))[0])]
    assert (grains.of_points[ends] == NONE).all()
    assert grains.by_code.sum() == lattice.points - len(ends)


def test_which_columns_have_grains_follows_from_the_schema() -> None:
    codec = Codec(
        schema(
            number("pulse", 30, 250),
            number("score", 0, 10, "integer"),
            number("income", 0, 1_000_000, "integer"),
            number("systolic", 60, 260, "integer"),
            number("year", 1950, 2020, "year"),
            {"name": "ward", "type": "string", "constraints": {"enum": ["a"], "required": True}},
            number("grade", 1, 3, "integer", dpsynth={"step": 1}),
            {
                "name": "admitted",
                "type": "date",
                "constraints": {"minimum": "2010-01-01", "maximum": "2011-12-31", "required": True},
            },
            {
                "name": "discharged",
                "type": "date",
                "constraints": {"required": True},
                "dpsynth": {"after": "admitted", "longest": 90},
            },
        )
    )
    with_grains = {
        name for name, grains in zip(codec.names, codec.grains, strict=True) if grains is not None
    }
    assert with_grains == {"pulse", "systolic"}


@pytest.mark.parametrize("bounds", [(20.0, 1000.0), (1.0, 10.0)])
def test_points_of_a_code_are_drawn_by_their_grains(bounds: tuple[float, float]) -> None:
    """Whole values alone, on a lattice of more points than codes; without weights, all of them."""
    codec = Codec(schema(number("value", *bounds)))
    (grains,) = codec.grains
    assert grains is not None and codec.sizes[0] < len(grains.of_points)
    coarse = (np.array(grains.units) % grains.units[-2] == 0).astype(float)
    followed = codec.following_grains(np.array([[*coarse, *[1.0] * (8 - len(coarse))]]))
    some = np.flatnonzero(grains.by_code @ coarse > 0)
    codes = np.repeat(some, 20)[:, None].astype(np.uint16)
    lattice = codec.lattice("value")
    assert lattice is not None
    for coder, expected in ((followed, True), (codec, False)):
        drawn = coder.decode(codes, np.random.default_rng(1))["value"].to_numpy()
        positions = lattice.positions(drawn)
        assert (grains.of_points[positions] < len(grains.units) - 1).all() == expected
        again = codec.encode(coder.decode(codes, np.random.default_rng(2)))
        assert (again == codes).all()  # a point stays in its code


def test_a_code_without_a_point_of_any_weight_is_drawn_evenly() -> None:
    codec = Codec(schema(number("value", 20.0, 1000.0)))
    (grains,) = codec.grains
    assert grains is not None
    coder = GrainedCoder.following(codec._coders[0], np.zeros(len(grains.units)))  # type: ignore[arg-type]
    last = np.full(500, codec.cells[0] - 2)
    drawn = coder.decode(last, np.random.default_rng(1))
    assert (codec.encode(drawn.to_frame("value")) == last[:, None]).all()


def test_missing_cells_stay_missing() -> None:
    field = number("value", 20.0, 1000.0)
    field["constraints"].pop("required")
    codec = Codec(schema(field)).following_grains(np.ones((1, 8)))
    codes = np.array([[5], [codec.sizes[0] - 1]], dtype=np.uint16)
    assert codec.decode(codes, np.random.default_rng(1))["value"].isna().tolist() == [False, True]
