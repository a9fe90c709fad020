"""P28: the codes of a cell are put into places by the cell alone.

The check: each row is coded alone, and in tables with odd patients more or one less; its codes must
be the same. So a patient moves her own coded rows and no others, and each mechanism's sensitivity
is what it was. The broken versions order the codes of a cell by how often they occur, as "the
commonest diagnosis first" would, or keep the commonest where there are more than are kept.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding import Codec, SetCoder
from dpsynth.encoding.code_sets import CodeSet
from dpsynth.schema import Schema

from ..support.code_sets import frame_of, many_cells, schema_of, several
from ..support.neighbours import moved_codes

ROWS = 80
ODD = {
    "a rare code often": ["C2;A1", *["C2"] * 60],
    "all codes": ["A;A1;A2;A3;B;B1;B2;C;C1;C2"] * 3,
    "unknown codes": ["X;Y", "X;Y;Z", ";;;", "?"],
    "nothing": ["", None, "?"],
}
SCHEMAS = [schema_of(), schema_of(several=several(2, ordered=True)), schema_of(required=True)]


def moved(schema: Schema) -> set[str]:
    odd = {name: frame_of(*cells) for name, cells in ODD.items()}
    return moved_codes(schema, many_cells(ROWS), odd)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_each_cell_has_the_places_that_it_has_alone(schema: Schema) -> None:
    assert moved(schema) == set()


def by_frequency(coder: SetCoder, cells: pd.Series) -> tuple[np.ndarray, list[CodeSet]]:
    """A broken version: the commonest code of the table first."""
    of_cell, every = ORIGINAL(coder, cells)
    counts = np.bincount([code for one in of_cell for code in every[one].codes], minlength=99)
    ordered = [
        CodeSet(tuple(sorted(one.codes, key=lambda code: -counts[code])), one.unknown, one.refused)
        for one in every
    ]
    return of_cell, ordered


ORIGINAL = SetCoder.sets


def test_the_check_finds_codes_in_order_of_frequency(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SetCoder, "sets", by_frequency)
    assert len(moved(SCHEMAS[1])) >= 2


def test_the_check_finds_that_the_commonest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def commonest(coder: SetCoder, codes: tuple[int, ...]) -> list[int]:
        return sorted(codes[: coder.several.most])

    monkeypatch.setattr(SetCoder, "sets", by_frequency)
    monkeypatch.setattr(SetCoder, "kept", commonest)
    assert len(moved(SCHEMAS[0])) >= 2


def test_which_codes_of_a_long_cell_are_kept_favours_none() -> None:
    codec = Codec(schema_of(several=several(2)))
    cells = [f"{a};{b};{c};C2" for a in ("A", "A1") for b in ("A2", "A3") for c in ("B", "B1", "C")]
    kept = codec.encode(frame_of(*cells))[:, 1:]
    last = codec.schema.column("dx: 1").levels.index("C2")
    share = (kept == last).any(axis=1).mean()
    assert 0.1 < share < 0.9, "the last of the list is kept now and then, and so are the first"
    again = codec.encode(frame_of(*(";".join(reversed(cell.split(";"))) for cell in cells)))[:, 1:]
    assert (again == kept).all(), "the order in which codes stand says nothing"
