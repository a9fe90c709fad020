"""Runs of the quality benchmark: which are due and kept, what fails or is missing. No fits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ..support.quality_lines import fit

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(autouse=True)
def bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))


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


@pytest.mark.long
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
