"""The report of the quality benchmark: means, verdicts, charts and its section. No fits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ..support.quality_lines import fit
from ..support.short_training import shorten_mixture

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(autouse=True)
def bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))


def floor(table: str) -> dict[str, Any]:
    measures = {"tvd1": 0.002, "tvd2": 0.006, "tvd3": 0.011, "tstr_hgb": 0.805, "c2st_auc": 0.508}
    reference = {"floor_tvd1": 0.005, "floor_tvd2": 0.0125, "floor_tvd3": 0.025, "trtr_hgb": 0.807}
    return {"key": [table, "floor", "bootstrap"], "commit": "abc", **measures, **reference}


def target(measure: str, bound: float, epsilon: float = 3) -> dict[str, str]:
    case = {"table": "cardio", "unit": "row", "epsilon": f"{epsilon:g}"}
    return case | {"measure": measure, "bound": str(bound)}


def pick_tvae(table: str, unit: str, epsilon: float) -> str:
    return "tvae"


def test_means_are_over_the_seeds_of_one_delta() -> None:
    from quality_results import GAP, summary

    lines = [fit("cardio", "tvae", 3, seed, tvd2=x) for seed, x in enumerate((0.003, 0.004, 0.008))]
    other = fit("cardio", "tvae", 3, 0, tvd2=9.0)
    other["key"][4] = 1e-6
    cells = summary([*lines, other, floor("cardio")], delta=1e-5)
    assert list(cells) == [("cardio", "row", "tvae", 3.0)]
    cell = cells["cardio", "row", "tvae", 3.0]
    assert cell.seeds == 3
    assert cell.means["tvd2"].value == pytest.approx(0.005)
    assert cell.means["tvd2"].half_range == pytest.approx(0.0025)
    assert cell.means[GAP].value == pytest.approx(0.01)


def test_both_floors_come_from_the_bootstrap() -> None:
    from quality_results import floors

    real = floors([floor("cardio"), fit("cardio", "tvae", 3, 0)])
    assert set(real) == {("cardio", "train-test"), ("cardio", "bootstrap")}
    assert real["cardio", "train-test"]["tvd2"] == 0.0125
    assert real["cardio", "bootstrap"]["tvd2"] == 0.006
    assert "c2st_auc" not in real["cardio", "train-test"]


def test_targets_are_met_missed_or_not_measured() -> None:
    from quality_results import summary
    from quality_targets import judged

    cells = summary([fit("cardio", "tvae", 3, 0)], delta=1e-5)
    bounds = {"tvd2": 0.004, "tvd3": 0.0099, "tstr_hgb": 0.795, "c2st_auc": 0.54, "tstr_gap": 0.02}
    targets = [target(*pair) for pair in bounds.items()]
    verdicts = judged(cells, [*targets, target("tvd2", 1.0, epsilon=10)], pick_tvae)
    assert [verdict.met for verdict in verdicts] == [True, False, False, True, True, False]
    assert str(verdicts[0]) == "≤ .004: .0040 met"
    assert str(verdicts[2]) == "≥ .795: .790 **missed**"
    assert str(verdicts[5]) == "≤ 1: not measured"


def test_a_verdict_shows_digits_enough_to_agree_with_its_word() -> None:
    from quality_targets import Verdict

    case = ("brfss2015", "row", 10.0)
    assert str(Verdict(case, "tvae", 3, "tstr_gap", 0.004, 0.0041)) == "≤ .004: .0041 **missed**"
    assert str(Verdict(case, "tvae", 3, "tvd2", 0.0065, 0.00652)) == "≤ .0065: .00652 **missed**"


def test_auto_is_judged_where_it_was_run_and_its_choice_elsewhere() -> None:
    from quality_results import summary
    from quality_targets import judged

    lines = [fit("cardio", "tvae", epsilon, 0, tvd2=0.5) for epsilon in (1, 3)]
    lines.append(fit("cardio", "auto", 3, 0, tvd2=0.001))
    targets = [target("tvd2", 0.01, epsilon) for epsilon in (1, 3)]
    verdicts = judged(summary(lines, delta=1e-5), targets, pick_tvae)
    assert [(verdict.model, verdict.met) for verdict in verdicts] == [
        ("tvae", False),
        ("auto", True),
    ]


def body(lines: list[dict[str, Any]]) -> str:
    from quality_report import read_csv, section

    peers, targets = read_csv(BENCH / "peers.csv"), read_csv(BENCH / "targets.csv")
    return section(lines, targets, peers, delta=1e-5, pick=pick_tvae)


def test_the_section_shows_seeds_spread_floors_and_peers() -> None:
    lines = [fit("cardio", "tvae", 3, seed, tvd2=0.004 + 0.001 * seed) for seed in range(2)]
    auto = {**fit("cardio", "auto", 3, 0), "model": "tvae"}
    text = body([*lines, auto, floor("cardio")])
    assert "| 3 | auto (tvae) | 1 | .0010 | .0040 | .0100 | .790 | .530 | 5.0 | 1.0 |" in text
    assert "|  | tvae | 2 | .0010 ± .0000 | .0045 ± .0005 |" in text
    assert "| real | test rows |  | .0050 | .0125 | .0250 | .807 | – |" in text
    assert "| real | bootstrap of training rows |  | .0020 |" in text
    assert "| dpmm 0.1.9 MST | 3 | .015 | .035 |" in text
    assert "≤ .0045: .0040 met" in text and "not measured" in text


def test_replacing_the_section_again_changes_nothing_else() -> None:
    from pages import marks, replace_section

    opened, closed = marks("quality")
    page = "# Benchmarks\n\nFigures of\ntwo lines.\n\n## Speed\n\nFast.\n"
    first = replace_section(page, "## Quality\n\nold", "quality")
    assert first.startswith(
        f"# Benchmarks\n\nFigures of\ntwo lines.\n\n{opened}\n\n## Quality\n\nold"
    )
    assert first.endswith(f"{closed}\n\n## Speed\n\nFast.\n")
    again = replace_section(first, "## Quality\n\nnew", "quality")
    assert (
        again
        == first.replace("old", "new")
        == replace_section(again, "## Quality\n\nnew", "quality")
    )
    with pytest.raises(ValueError, match="do not enclose"):
        replace_section(page + opened, "new", "quality")


def test_packages_of_one_epsilon_stand_side_by_side() -> None:
    from quality_figure import peer_slots
    from quality_report import read_csv

    slots = peer_slots(read_csv(BENCH / "peers.csv"))
    places = sorted(place for _, _, place in slots)
    assert min(b / a for a, b in zip(places, places[1:], strict=False)) > 1.1
    assert len({row["peer"] for _, row, _ in slots}) == len({label for label, _, _ in slots}) == 9
    assert all(row["epsilon"] != "inf" for _, row, _ in slots)


def test_negative_errors_stay_on_the_logarithmic_axis() -> None:
    from quality_figure import GAP, LEAST, TELL, error

    assert error({GAP: -0.01}, GAP) == LEAST[GAP]
    assert error({"c2st_auc": 0.49}, TELL) == LEAST[TELL]
    assert error({"c2st_auc": 0.56}, TELL) == pytest.approx(0.06)
    assert error({}, "tvd2") is None


def test_a_generator_keeps_its_colour_whichever_others_were_measured() -> None:
    from quality_figure import styles

    from dpsynth.models.registry import NAMES

    every = styles([*NAMES, "auto"])
    assert len(set(every.values())) == len(NAMES) + 1
    for name in every:
        assert styles([name]) == {name: every[name]}


@pytest.mark.long
def test_equal_results_draw_equal_bytes(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from quality_figure import draw
    from quality_report import read_csv

    lines = [fit("cardio", model, e, 0) for model in ("auto", "tvae") for e in (1, 3, 10)]
    lines += [fit("cardio", "tvae", 3, 1, tvd2=0.006), floor("cardio")]
    peers = read_csv(BENCH / "peers.csv")
    for name in ("a.svg", "b.svg"):
        draw(lines, peers, tmp_path / name, delta=1e-5)
    first = (tmp_path / "a.svg").read_bytes()
    assert first == (tmp_path / "b.svg").read_bytes() and b"<svg" in first
    draw(lines[:-2], peers, tmp_path / "c.svg", delta=1e-5)
    assert first != (tmp_path / "c.svg").read_bytes()


def test_the_page_holds_the_means_of_the_record() -> None:
    """Each mean of the seeds in bench/quality.jsonl stands in its table of docs/benchmarks.md."""
    page = (BENCH.parent / "docs" / "benchmarks.md").read_text()
    titles = {
        ("cardio", "row"): "### cardio, rows",
        ("diabetes130", "row"): "### diabetes130, rows",
        ("diabetes130", "patient"): "### diabetes130, patients",
        ("brfss2015", "row"): "### brfss2015, rows",
    }
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for line in (BENCH / "quality.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["key"][1] != "floor":
            table, unit, model = record["key"][:3]
            found.setdefault((table, unit, model), []).append(record)
    everywhere = ("independent", "mixture", "autoregressive", "ctgan")
    assert set(found) == {(*place, model) for place in titles for model in everywhere} | {
        ("cardio", "row", "tvae")
    }
    for (table, unit, model), records in found.items():
        text = page[page.index(titles[table, unit]) :].split("\n### ")[0]
        rows = [line for line in text.splitlines() if f"| {model} |" in line]
        for epsilon, row in zip((1.0, 3.0, 10.0), rows, strict=True):
            seeds = [one["tvd2"] for one in records if one["key"][3] == epsilon]
            assert len(seeds) == (1 if model == "tvae" else 3)
            assert f"{sum(seeds) / len(seeds):.4f}".lstrip("0") in row


def test_the_ceiling_is_a_line_beside_the_generators() -> None:
    from quality_report import measured
    from quality_results import CEILING, floors, summary

    lines = [fit("cardio", "tvae", 3, 0), fit("cardio", CEILING, 3, 0, tvd2=0.0015)]
    lines[1]["model"] = CEILING
    text = measured(summary(lines, delta=1e-5), floors(lines), "cardio", "row")
    assert "| real rows in its bins | 1 |" in text
    assert ".0015" in text


def test_real_rows_in_bins_keep_their_bins_and_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import numpy as np
    from ceiling import ceiling

    from dpsynth.schema import Schema
    from dpsynth.tables import simulate

    shorten_mixture(monkeypatch)
    schema = Schema.load("demo")
    rows = simulate(300, seed=1)
    drawn = ceiling(rows, schema, epsilon=3.0, delta=1e-6)
    names = [name for name in drawn if name in rows]
    assert 0 < len(drawn) <= len(rows)
    categories = [c.name for c in schema.modelled if c.name in names and c.type == "string"]
    assert all(np.isin(drawn[name].dropna(), rows[name]).all() for name in categories[:2])
