"""P27: whatever linked tables hold, a check of them shows no cell and no key, and does not fail.

Cells of all columns are replaced by canaries and odd texts, rows are left out, doubled and
shuffled. The broken version words a finding with the keys that it is about.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from dpsynth import inspection
from dpsynth.errors import TableError
from dpsynth.inspection import CheckResult
from dpsynth.schema import LinkedSchema

from ..support.clean_ward import tables, ward
from ..support.some_cases import some_of

SCHEMA = LinkedSchema.from_dict(ward())
CANARY = "Quokka7141592"
ODD = [CANARY, "", " ", "NA", "1e999", "-5", "2004-02-30", "31.12.2004", "NaT", None, "\x00", "0"]
KEYS = tables()["patients"]["id"].tolist()


def mangled(seed: int) -> dict[str, pd.DataFrame]:
    """Break tables at random."""
    rng, broken = np.random.default_rng(seed), tables()
    for name, frame in broken.items():
        for column in frame.columns[rng.random(len(frame.columns)) < 0.4]:
            rows = rng.random(len(frame)) < rng.choice([0.02, 0.3, 1.0])
            frame.loc[rows, column] = rng.choice(np.array(ODD, dtype=object), rows.sum())
        if rng.random() < 0.4:
            frame = frame.sample(frac=float(rng.choice([0.0, 0.5, 2.0])), replace=True)
        broken[name] = frame.sample(frac=1.0, random_state=seed).reset_index(drop=True)
    return broken


def words(found: CheckResult) -> str:
    """All that is shown of a check."""
    lines = [line for one in found.findings for line in one.lines()]
    return "\n".join(lines) + json.dumps(found.to_dict()) + repr(found)


def words_with_keys(found: CheckResult) -> str:
    """The broken version."""
    return words(found) + str([found.texts(one) for one in found.findings])


def quotes(shown: Callable[[CheckResult], str], broken: dict[str, pd.DataFrame]) -> bool:
    try:
        text = shown(inspection.check(broken, SCHEMA))
    except TableError as error:
        text = str(error)
    return CANARY in text or any(key in text for key in KEYS)


@pytest.mark.parametrize("seed", some_of(range(24), every=3))
def test_no_cell_is_shown(seed: int) -> None:
    assert not quotes(words, mangled(seed))


def test_keys_in_a_finding_would_be_seen() -> None:
    broken = tables()
    broken["labs"]["id"] = CANARY
    assert quotes(words_with_keys, broken) and not quotes(words, broken)
