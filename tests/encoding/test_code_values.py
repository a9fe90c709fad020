"""What codes stand for, as numbers."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.encoding import Codec, code_values
from dpsynth.schema import Schema


@pytest.mark.parametrize("name", ["cardio", "brfss2015", "diabetes130", "demo"])
def test_a_code_stands_for_a_cell_that_has_it(name: str) -> None:
    """Decoded cells lie about where the code says, and missing and categories are no numbers."""
    schema = Schema.load(name)
    codec = Codec(schema)
    rng = np.random.default_rng(0)
    for place, column in enumerate(codec.schema.modelled):
        values = code_values(column, schema.dialect.decimal)
        assert len(values) == codec.sizes[place]
        cells = codec.cells[place]
        assert np.isnan(values[cells:]).all()
        if not cells:
            continue
        assert (np.diff(values[:cells]) >= 0).mean() > 0.4 and np.isfinite(values[:cells]).all()
        codes = np.zeros((cells, len(codec.names)), dtype=np.int64)
        codes[:, place] = np.arange(cells)
        drawn = codec.decode(codes, rng)
        if column.name in drawn and column.kind.is_number and column.is_read:
            numbers = drawn[column.name].to_numpy(dtype=float)
            wide = np.array(codec.points[place]) > 1
            assert numbers[~wide] == pytest.approx(values[:cells][~wide])
            low, high = np.nanmin(values), np.nanmax(values)
            apart = np.abs(numbers - values[:cells])[wide]
            assert not len(apart) or apart.max() < 0.2 * (high - low)
