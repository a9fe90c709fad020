"""A check of a column of several codes: counts of cells, texts of single codes, and no cell."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from dpsynth import inspection
from dpsynth.inspection import Level, write_values

from ..support.code_sets import frame_of, schema_of, several

CLEAN = ["A;B", "C", "", "A1;A2;B1"] * 20


def test_a_clean_column_has_no_finding() -> None:
    found = inspection.check(frame_of(*CLEAN), schema_of())
    assert not [one for one in found.findings if one.place == "dx"]
    assert found.cells["dx"].missing == 0.25 and list(found.cells) == ["sex", "dx"]


def test_unknown_codes_are_counted_by_cell_and_kept_one_by_one() -> None:
    found = inspection.check(frame_of(*CLEAN, *["A;XX", "YY;XX", "B"] * 5), schema_of())
    [finding] = [one for one in found.findings if one.place == "dx"]
    assert (finding.kind, finding.count, finding.level) == ("unknown", 10, Level.SERIOUS)
    assert "hold an unknown code, 2 different values; a fit leaves such codes out" in (
        finding.message
    )
    assert found.texts(finding) == {"XX": 10, "YY": 5}
    assert "XX" not in str(finding.lines()) + str(found.to_dict())
    other = inspection.check(frame_of(*CLEAN, *["A;XX"] * 9), schema_of(on_unknown="other"))
    [finding] = [one for one in other.findings if one.place == "dx"]
    assert finding.message.endswith("1 different value; a fit makes them 'other'")


def test_causes_are_tried_on_single_codes() -> None:
    cells = frame_of(*CLEAN, *["A;unknown"] * 9)
    [finding] = [one for one in inspection.check(cells, schema_of()).findings if one.place == "dx"]
    assert [cause.key for cause in finding.causes] == ["missing-word"]


def test_cells_of_too_many_codes() -> None:
    cells = frame_of(*CLEAN, *["A;B;C;A1;A2"] * 5)
    for ordered, kept in ((False, "some of them, chosen by the cell alone"), (True, "the first")):
        schema = schema_of(several=several(ordered=ordered))
        [finding] = [one for one in inspection.check(cells, schema).findings if one.place == "dx"]
        assert (finding.kind, finding.count) == ("clipped", 5)
        assert f"hold more than 3 codes; a fit keeps {kept}" in finding.message
        assert "more codes need more noise" in finding.remedy


def test_the_values_file_leaves_out_cells_of_too_many_codes(tmp_path: Path) -> None:
    found = inspection.check(frame_of(*CLEAN, *["A;B;C;A1;A2", "XX"] * 5), schema_of())
    write_values(found, tmp_path / "values.yaml")
    text = (tmp_path / "values.yaml").read_text()
    assert "XX" in text and "A1;A2" not in text


def test_a_code_twice_or_an_empty_part_is_never_serious() -> None:
    found = inspection.check(frame_of(*["A;A", "A;;B", ";A"] * 10), schema_of())
    [finding] = [one for one in found.findings if one.place == "dx"]
    assert (finding.kind, finding.count, finding.level) == ("duplicates", 30, Level.WARNING)
    assert "counts a code once and leaves empty parts out" in finding.message


def test_required_cells_without_a_code() -> None:
    cells = pd.concat([frame_of(*["A"] * 80), frame_of(*["", "?"] * 10)], ignore_index=True)
    [finding] = [
        o for o in inspection.check(cells, schema_of(required=True)).findings if o.place == "dx"
    ]
    assert (finding.kind, finding.count) == ("absent", 20)
