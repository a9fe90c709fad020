"""The quality benchmark: what is due, what is kept, means, verdicts and the section. No fits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(autouse=True)
def bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))


def fit(table: str, model: str, epsilon: float, seed: int, **scores: float) -> dict[str, Any]:
    measures = {"tvd1": 0.001, "tvd2": 0.004, "tvd3": 0.01, "tstr_hgb": 0.79, "c2st_auc": 0.53}
    measures |= {"trtr_hgb": 0.8, "fit_s": 5.0, "sample_s": 1.0} | scores
    return {"key": [table, "row", model, epsilon, 1e-5, seed], "commit": "abc", **measures}


def floor(table: str) -> dict[str, Any]:
    measures = {"tvd1": 0.002, "tvd2": 0.006, "tvd3": 0.011, "tstr_hgb": 0.805, "c2st_auc": 0.508}
    reference = {"floor_tvd1": 0.005, "floor_tvd2": 0.0125, "floor_tvd3": 0.025, "trtr_hgb": 0.807}
    return {"key": [table, "floor", "bootstrap"], "commit": "abc", **measures, **reference}


def target(measure: str, bound: float, epsilon: float = 3) -> dict[str, str]:
    case = {"table": "cardio", "unit": "row", "epsilon": f"{epsilon:g}"}
    return case | {"measure": measure, "bound": str(bound)}


def pick_tvae(table: str, unit: str, epsilon: float) -> str:
    return "tvae"


def test_seeds_come_one_after_another_and_each_fit_once() -> None:
    from quality import tables_named, wanted

    pairs = tables_named("cardio,diabetes130")
    assert pairs == [("cardio", "row"), ("diabetes130", "row"), ("diabetes130", "patient")]
    keys = wanted(pairs, ["mixture", "auto"], [1.0, 3.0], seeds=2, delta=1e-5)
    assert len(set(keys)) == len(keys) == 3 * 2 * 2 * 2
    assert [key[-1] for key in keys] == [0] * 12 + [1] * 12
    assert tables_named("diabetes130:patient") == [("diabetes130", "patient")]


def test_delta_stays_below_one_over_the_population() -> None:
    from quality import below_one_in

    assert below_one_in(70_000, 1e-5) == 1e-5
    assert below_one_in(203_000, 1e-5) == below_one_in(100_000, 1e-5) == 1e-6


def test_a_kept_line_is_found_by_the_key_that_asks_for_it(tmp_path: Path) -> None:
    from quality import wanted
    from quality_results import append_line, key_of, read_lines

    keys = wanted([("cardio", "row")], ["tvae"], [1.0, 10.0], seeds=1, delta=1e-5)
    append_line(tmp_path / "r.jsonl", {"key": keys[1], "commit": None, "tvd1": 0.1})
    done = {key_of(line) for line in read_lines(tmp_path / "r.jsonl")}
    assert [key for key in keys if key not in done] == keys[:1]


def test_a_torn_line_costs_its_own_fit_alone(tmp_path: Path) -> None:
    from quality_results import append_line, read_lines

    path = tmp_path / "r.jsonl"
    append_line(path, fit("cardio", "tvae", 1, 0))
    with path.open("a") as file:
        file.write(json.dumps(fit("cardio", "tvae", 3, 0))[:40])
    append_line(path, fit("cardio", "tvae", 10, 0))
    assert [line["key"][3] for line in read_lines(path)] == [1, 10]


def test_the_last_line_of_a_key_counts_and_lines_without_a_version_do_not(tmp_path: Path) -> None:
    from quality_results import append_line, read_lines

    old = fit("cardio", "mixture", 1, 0)
    del old["commit"]
    for line in (fit("cardio", "tvae", 1, 0, tvd2=0.9), fit("cardio", "tvae", 1, 0), old):
        append_line(tmp_path / "r.jsonl", line)
    assert [line["tvd2"] for line in read_lines(tmp_path / "r.jsonl")] == [0.004]


def test_a_failed_process_is_named_and_the_rest_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from quality_jobs import run_all
    from quality_results import key_of, read_lines

    code = (
        "import json, os, sys; assert os.environ['OMP_NUM_THREADS'] == '1'"
        "\nif sys.argv[2] == '1': sys.exit('no such thing')"
        "\njson.dump({'commit': None, 'tvd1': 0.5}, open(sys.argv[1], 'w'))"
    )

    def command(key: tuple[Any, ...], found: Path) -> list[str]:
        return [sys.executable, "-c", code, str(found), str(key[-1])]

    keys = [("cardio", "row", "tvae", 1.0, 1e-5, seed) for seed in range(4)]
    failed = run_all(keys, tmp_path / "r.jsonl", command, jobs=2)
    assert failed == [keys[1]]
    kept = {key_of(line) for line in read_lines(tmp_path / "r.jsonl")}
    assert kept == {keys[0], keys[2], keys[3]}
    error = capsys.readouterr().err
    assert "FAILED cardio row tvae 1.0 1e-05 1" in error and "no such thing" in error
    assert [path.name for path in tmp_path.iterdir()] == ["r.jsonl"]


def test_an_interrupted_run_leaves_no_process_and_keeps_its_lines(tmp_path: Path) -> None:
    from quality_jobs import run_all
    from quality_results import read_lines

    pid = tmp_path / "pid"
    quick = "import json, sys; json.dump({'commit': None}, open(sys.argv[1], 'w'))"
    slow = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"

    def command(key: tuple[Any, ...], found: Path) -> list[str]:
        if key[-1] == 2:
            while not (pid.exists() and pid.read_text()):
                time.sleep(0.01)
            raise KeyboardInterrupt
        return [sys.executable, "-c", slow if key[-1] else quick, str(found)]

    keys = [("cardio", "row", "tvae", 1.0, 1e-5, seed) for seed in range(3)]
    with pytest.raises(KeyboardInterrupt):
        run_all(keys, tmp_path / "r.jsonl", command, jobs=2)
    assert [line["key"][-1] for line in read_lines(tmp_path / "r.jsonl")] == [0]
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pid", "r.jsonl"]


@pytest.mark.parametrize("given", [None, "empty"])
def test_missing_tables_are_said(tmp_path: Path, given: str | None) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "DPSYNTH_DATA"}
    if given:
        environment["DPSYNTH_DATA"] = str(tmp_path / given)
    done = subprocess.run(
        [sys.executable, str(BENCH / "quality.py"), "--quick", "--work", str(tmp_path / "work")],
        env=environment,
        capture_output=True,
        text=True,
    )
    output = done.stdout + done.stderr
    if given is None:
        assert done.returncode == 0 and "DPSYNTH_DATA is not set" in output
    else:  # a folder that is named and wrong is a mistake, not a choice
        assert done.returncode == 1 and "holds no cardio.csv.gz" in output
    assert not (tmp_path / "work" / "results.jsonl").exists()


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
