"""Steps of all series are laid end to end in few bytes, and count as they would in more."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.models.histories.steps import Stack

SERIES = (np.array([0, 2]), np.array([3, 0, 1]))
OWNERS = (np.array([0, 1]), np.array([0, 1, 1]))
WEIGHTS = (np.array([4, 4]), np.array([4, 2, 2]))


@pytest.mark.parametrize(
    ("widths", "expected", "kind"),
    [
        ([3, 4], [0, 2, 6, 3, 4], np.int32),
        ([2**31 - 5, 4], [0, 2, 2**31 - 2, 2**31 - 5, 2**31 - 4], np.int32),
        ([2**31, 4], [0, 2, 2**31 + 3, 2**31, 2**31 + 1], np.int64),
    ],
)
def test_cells_take_as_few_bytes_as_their_number_needs(
    widths: list[int], expected: list[int], kind: type[np.integer]
) -> None:
    stack = Stack((), tuple(codes[:, None] for codes in SERIES), OWNERS, WEIGHTS)
    rows = stack._laid(iter([list(SERIES)]), [widths])
    assert rows.cells[0].dtype == kind
    assert rows.cells[0].tolist() == expected
    assert rows.units.tolist() == [0, 1, 0, 1, 1]
    assert rows.weights.tolist() == [4, 4, 4, 2, 2]
