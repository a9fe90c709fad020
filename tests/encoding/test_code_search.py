"""Which cells hold a code that may be found, and what is handed to the mechanism."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding import Codec, code_search, find_codes
from dpsynth.privacy import CodeDiscovery, Entropy, Occurrences, SeededEntropy, Selected
from dpsynth.schema import Schema, with_found
from dpsynth.tables import open_table

from ..support.bare_counts import Silence
from ..support.discovered_ward import DEVICE, ICD, discovered_ward, patients, ward

EVENT = CodeDiscovery("codes", 2, 2, delta=1e-3, noise_multiplier=2.0)


def found(frame: pd.DataFrame, schema: Schema, entropy: Entropy | None = None) -> dict[str, Any]:
    return find_codes(open_table(frame, schema), schema, EVENT, entropy or Silence(0))


def candidates(cells: list[str], **fields: Any) -> dict[str, list[str]]:
    """All codes that would be handed to the mechanism, each of a patient of its own."""
    frame = patients([(f"p{place}", cell, cell) for place, cell in enumerate(cells)])

    def all_of(occurrences: Occurrences, event: CodeDiscovery, entropy: Entropy) -> Selected:
        codes = np.unique(occurrences.codes)
        return Selected(codes, np.full(len(codes), 9))

    with patch.object(code_search, "select_codes", all_of):
        return {name: list(own) for name, own in found(frame, discovered_ward(**fields)).items()}


def test_common_codes_are_found_and_rare_ones_are_not() -> None:
    assert found(ward(), discovered_ward()) == {
        "diagnosis": ("250.01", "401", "428.0"),
        "device": ("A001", "B002"),
    }


def test_a_code_is_what_fits_the_pattern_and_stands_in_a_group() -> None:
    cells = [" 428.0 ", "v45.8", "250.01", "999.99", "1000", "E812.0", "circulatory", "Maria", ""]
    assert candidates(cells)["diagnosis"] == ["250.01", "428.0", "999.99", "E812.0", "V45.8"]
    cells = ["a001", "A001", "A0012", "Anna", "other", "B 02", "Z999"]
    assert candidates(cells)["device"] == ["A001", "Z999"]


def test_missing_values_and_reasons_are_no_codes() -> None:
    own = discovered_ward().column("device")
    assert own.codes is not None
    cells = ["X000", "q001", "A001", "x000"]
    frame = patients([(f"p{place}", cell, cell) for place, cell in enumerate(cells)])
    schema = discovered_ward(diagnosis=None)
    columns = tuple(
        replace(
            column,
            missing_values=("X000",),
            forms=replace(column.forms, reasons=(("refused", ("q001",)),)),
        )
        if column.name == "device"
        else column
        for column in schema.columns
    )
    schema = replace(schema, columns=columns)
    searched = code_search.Searched(schema.column("device"), schema)
    assert searched.codes(frame).tolist() == [-1, -1, 0, -1]
    assert list(searched.names) == ["A001"]


def test_a_patient_brings_at_most_the_codes_of_her_rows_that_count() -> None:
    rows = [("one", "428.0", f"A{number:03d}") for number in range(40)]
    rows += [(f"p{number}", "401", "B002") for number in range(5)]
    kept: list[Occurrences] = []

    def watched(occurrences: Occurrences, event: CodeDiscovery, entropy: Entropy) -> Selected:
        kept.append(occurrences)
        return Selected(np.empty(0, np.int64), np.empty(0, np.int64))

    with patch.object(code_search, "select_codes", watched):
        found(patients(rows), discovered_ward(rows=2), SeededEntropy(3))
    units, counts = np.unique(kept[0].units, return_counts=True)
    assert len(units) == 6 and counts.max() == 4  # two rows, two columns
    found(patients(rows), discovered_ward(rows=2))  # and the mechanism takes them


def test_of_too_many_those_with_the_largest_noisy_counts_are_kept() -> None:
    schema = discovered_ward(diagnosis={**ICD, "most": 2})
    codes = ["250.01"] * 100 + ["401"] * 500 + ["428.0"] * 300
    rows = [(f"p{place}", code, "A001") for place, code in enumerate(codes)]
    assert found(patients(rows), schema)["diagnosis"] == ("401", "428.0")


def test_rows_are_coded_by_the_released_list_alone() -> None:
    """A code that was not found stands in its group, or is other, whoever else has it."""
    schema = with_found(discovered_ward(), {"diagnosis": ("428.0",), "device": ("A001",)})
    frame = patients([("a", "428.0", "a001"), ("b", "401", "B002"), ("c", "junk", "junk")])
    codec = Codec(schema)
    cells = codec.decode(codec.encode(frame), np.random.default_rng(0))
    assert cells["diagnosis"].tolist() == ["428.0", "circulatory", None]
    assert cells["device"].tolist() == ["A001", "other", "other"]
    alone = codec.encode(frame.iloc[[1]])
    assert (alone == codec.encode(frame)[1]).all()


@pytest.mark.parametrize("field", [DEVICE, {**DEVICE, "most": 5}])
def test_nothing_is_found_where_nobody_has_a_code(field: dict[str, Any]) -> None:
    schema = discovered_ward(device=field)
    assert found(patients([("a", "", ""), ("b", "?", "")]), schema) == {
        "diagnosis": (),
        "device": (),
    }
