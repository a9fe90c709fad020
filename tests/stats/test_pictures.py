"""Pictures of statistics: a line for each group, whole and readable, whatever the noise was."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pandas as pd

from dpsynth.stats import Curve, curves_of, panel
from dpsynth.stats.page import MAX_PANELS


def survival(groups: list[str]) -> pd.DataFrame:
    rows = [
        (group, cut, share, share - 0.1, min(1.0, share + 0.1))
        for group in groups
        for cut, share in ((4.0, 0.9), (8.0, 0.7), (15.0, 0.4))
    ]
    return pd.DataFrame(rows, columns=["sex", "before", "survival", "lower", "upper"])


def classes(picture: str) -> list[str]:
    root = ElementTree.fromstring(picture)
    assert root.attrib["role"] == "img" and root[0].text
    assert "nan" not in picture and "inf" not in picture
    return [part.attrib["class"] for part in root.iter() if "class" in part.attrib]


def test_groups_share_a_panel_and_begin_with_everybody() -> None:
    [drawn], more = curves_of("stay", survival(["a", "b & c"]), "s1")
    found = classes(drawn.picture)
    assert found.count("line-1") == found.count("line-2") == 2  # the line, and its legend
    assert found.count("area-1") == 1 and more == 0
    assert drawn.caption == "Survival of a and b & c"
    [line] = re.findall(r'class="line-1" d="M44,([0-9.]+)L[^"]*L', drawn.picture)
    assert float(line) == 10.0  # 100 %


def test_many_groups_have_a_panel_each() -> None:
    drawn, more = curves_of("stay", survival([f"g{n}" for n in range(9)]), "s1")
    assert len(drawn) == MAX_PANELS and more == 9 - MAX_PANELS


def test_incidence_is_drawn_by_event_and_survival_is_not() -> None:
    one = survival(["x"]).drop(columns="sex").rename(columns={"survival": "share"})
    table = pd.concat([one.assign(event=event) for event in ("death", "move", "none")])
    table = table[["event", "before", "share", "lower", "upper"]]
    [drawn], _ = curves_of("stay", table, "s1")
    assert drawn.caption == "Incidence of death and move"
    assert classes(drawn.picture).count("line-3") == 0


def series(periods: int, *, smooth: bool) -> pd.DataFrame:
    days = pd.date_range("2024-01-01", periods=periods).strftime("%Y-%m-%d")
    table = pd.DataFrame({"day": [*days, "(missing)"], "count": 20.0})
    table["count"] -= 30.0 * (table.index % 7 == 0)  # below 0, as noise may have it
    table = table.assign(lower=table["count"] - 5, upper=table["count"] + 5)
    if smooth:
        table = table.assign(**{"smooth": 15.0, "smooth: lower": 12.0, "smooth: upper": 18.0})
    return table


def test_a_series_is_drawn_with_its_smooth_line_or_without() -> None:
    [plain], _ = curves_of("beds", series(40, smooth=False), "s1")
    [smooth], _ = curves_of("beds", series(40, smooth=True), "s1")
    assert "raw-1" in classes(smooth.picture) and "raw-1" not in classes(plain.picture)
    assert plain.caption == "2024-01-01 to 2024-02-09"
    [long], _ = curves_of("beds", series(1000, smooth=True), "s1")
    assert "each point is the mean of 3 periods" in long.caption


def test_what_is_no_curve_is_not_drawn() -> None:
    assert curves_of("x", pd.DataFrame({"sex": ["a", "b"], "count": [1.0, 2.0]}), "s1") == ([], 0)


def test_a_panel_holds_what_lies_beyond_its_axes() -> None:
    curve = Curve("<b>", [0.0, 1.0], [-5.0, 50.0], [-9.0, 1.0], [1.0, 99.0])
    drawn = panel("k", "a < b", [curve], [(0.0, "from"), (1.0, "to")], 10.0)
    heights = [float(y) for y in re.findall(r"[ML][0-9.]+,(-?[0-9.]+)", drawn)]
    assert classes(drawn) and min(heights) >= 0 and "<b>" not in drawn
