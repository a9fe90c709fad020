"""A messy extract that several tests of splits share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dpsynth.schema import Schema

from ..support.messy_extract import HEADER, SPELLINGS, UNITS, described


@pytest.fixture(scope="module")
def schema() -> Schema:
    return described()


@pytest.fixture(scope="module")
def lines() -> list[str]:
    """Rows of 400 units, 1 to 4 each under any spelling, in random order, with awkward cells."""
    rng = np.random.default_rng(1)
    rows = []
    for unit in range(UNITS):
        for _ in range(rng.integers(1, 5)):
            key = SPELLINGS[rng.integers(len(SPELLINGS))](unit)
            key = f'"{key}"' if rng.random() < 0.3 else key
            weight = ("70,5", "070,50", '"70,5"', " 70,5 ", "", "NA", "-1e3", "?")[rng.integers(8)]
            note = ("plain", '"a; b"', '"say ""ah"""', '"two\nlines"', "M\xfcller", "")[
                rng.integers(6)
            ]
            rows.append(f"{weight};{note};{key};{rng.choice(['true', '0', 'x'])}")
    return [rows[i] for i in rng.permutation(len(rows))]


@pytest.fixture
def source(lines: list[str], tmp_path: Path) -> Path:
    path = tmp_path / "extract.csv"
    path.write_bytes("\r\n".join([HEADER, *lines, ""]).encode("latin-1"))
    return path
