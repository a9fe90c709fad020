"""precision.csv: what follows from released counts and their noise, and nothing else; verified."""

from __future__ import annotations

import doctest
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsynth.bundle import release, verify
from dpsynth.bundle.format import Precision
from dpsynth.bundle.format import precision as module
from dpsynth.bundle.format.precision import PrecisionLine, pairs_precision
from dpsynth.bundle.pages.report import precision_section
from dpsynth.bundle.run_precision import precision_of
from dpsynth.certificate import Certificate
from dpsynth.errors import ArtifactError, VerificationError
from dpsynth.ledger import Ledger
from dpsynth.models.marginals import MeasuredPair, MeasuredPairs, Pairs, Released
from dpsynth.models.marginals import measured_pairs as pairs_module
from dpsynth.models.presets import ONE_WAY, PAIRS
from dpsynth.privacy import ChosenHistograms, JointHistograms
from dpsynth.schema import Schema
from dpsynth.synthesis import Run
from dpsynth.tables import simulate

from ..support.evaluation_tables import BASIS, number, words
from ..support.forger import Forger
from ..support.page_reader import said
from ..support.small_office import small_office

FIELDS = [words("sex", "f", "m"), words("ward", "a", "b", "c"), number("age", 0, 3)]


def small() -> Schema:
    size = {"value": 1000, "basis": BASIS}
    for field in FIELDS:
        field["constraints"] |= {"required": True}
        field["dpsynth"] |= {"on_unknown" if "enum" in field["constraints"] else "on_bad": "refuse"}
    return Schema.from_dict(
        {"fields": FIELDS, "dpsynth": {"version": 1, "population": size, "rows": size}}
    )


ONE_WAY_EVENT = JointHistograms(ONE_WAY, 3, 1, 20.0)
PAIRS_EVENT = ChosenHistograms(PAIRS, 10, 1, 8.0)


def run_of(pairs: MeasuredPairs | None, shares: list[float]) -> Run:
    arrays = {"shares": np.array(shares), "units": np.array([900.0])}
    arrays |= {} if pairs is None else pairs.arrays()
    return Run(small(), "mixture", {}, arrays, None, ("not-private",))


SHARES = [0.6, 0.4, 0.9, 0.08, 0.02, 0.25, 0.25, 0.25, 0.25]


def lines(given: Certificate, pairs: MeasuredPairs | None, *more: Any) -> Precision:
    events = (ONE_WAY_EVENT, PAIRS_EVENT, *more)
    found = precision_of(run_of(pairs, SHARES), replace(given, events=events))
    assert found is not None
    return found


CLEAR = MeasuredPair((0, 1), 6, 12.0, 600.0)
FAINT = MeasuredPair((1, 2), 12, 15.0, 13.0)


def test_columns_have_the_noise_of_the_plan(certificate: Certificate) -> None:
    found = lines(certificate, MeasuredPairs((), 900.0))
    columns = list(found.of("column"))
    assert [line.column for line in columns] == ["sex", "ward", "age"]
    assert {line.standard_error for line in columns} == {20.0}
    assert {line.readable_from for line in columns} == {200}
    assert columns[0].times_noise == pytest.approx(900 * np.sqrt((0.36 + 0.16) / 2) / 20, abs=0.01)


def test_groups_stand_out_from_three_errors(certificate: Certificate) -> None:
    found = lines(certificate, MeasuredPairs((), 900.0))
    groups = {line.group: line for line in found.of("group")}
    assert [*groups] == ["f", "m", "a", "b", "c"]  # no number has groups
    assert groups["f"].people == 540 and groups["f"].stands_out == "yes"
    assert groups["b"].people == 72 and groups["b"].times_noise == 3.6
    assert groups["b"].stands_out == "yes" and groups["c"].stands_out == "no"
    small_ones = precision_section(found)
    assert small_ones.small == ("ward: b", "ward: c") and small_ones.readable_from == 200


def test_pairs_stand_out_by_their_departure_and_others_were_not_measured(
    certificate: Certificate,
) -> None:
    found = lines(certificate, MeasuredPairs((FAINT, CLEAR), 900.0))
    first, second, third = found.of("pair")
    assert (first.column, first.other, first.stands_out) == ("sex", "ward", "yes")
    assert first.times_noise == pytest.approx(np.sqrt(600 / 6 - 1), abs=0.01)
    assert (first.standard_error, first.readable_from, first.cells) == (12.0, 120, 6)
    assert (second.column, second.other, second.stands_out) == ("ward", "age", "no")
    assert (third.column, third.other, third.measured) == ("sex", "age", "no")
    text = precision_section(found).unmeasured
    assert text.startswith("Nothing was measured of 1 pair of columns")
    assert "1 of 3" in said(str(precision_section(found).picture))


def test_columns_in_another_order_keep_their_names(certificate: Certificate) -> None:
    """A network draws targets last; what it kept of a column stands under that column's name."""
    moved = [*SHARES[2:], *SHARES[:2]]
    pairs = [replace(CLEAR, places=(0, 2)), replace(FAINT, places=(0, 1))]
    given = replace(certificate, events=(ONE_WAY_EVENT, PAIRS_EVENT))
    run = replace(run_of(MeasuredPairs(tuple(pairs), 900.0), moved), config={"order": [1, 2, 0]})
    assert precision_of(run, given) == lines(certificate, MeasuredPairs((CLEAR, FAINT), 900.0))


def test_the_departure_of_a_released_pair_is_that_of_its_counts() -> None:
    table = np.array([[0.35, 0.15], [0.15, 0.35]])  # .1 from independent columns in each cell
    released = Released((2, 2), np.full(4, 0.5), Pairs(((0, 1),), (table,), (0.02,)), 500.0)
    found = MeasuredPairs.of(released)
    [pair] = found.pairs
    assert pair.sd == pytest.approx(10.0) and pair.apart == pytest.approx(100.0)
    assert MeasuredPairs.restore(found.arrays()) == found


def test_how_many_pairs_were_measured_changes_no_shape() -> None:
    none = Released((2, 2, 3), np.full(7, 0.5), Pairs((), (), ()), 500.0)
    some = replace(none, pairs=Pairs(((0, 1),), (np.full((2, 2), 0.25),), (0.02,)))
    shapes = {MeasuredPairs.of(one).arrays()["measured"].shape for one in (none, some)}
    assert shapes == {(3, 5)}
    assert MeasuredPairs.restore(MeasuredPairs.of(none).arrays()) == MeasuredPairs.of(none)


def test_a_run_that_keeps_no_counts_has_no_file(certificate: Certificate) -> None:
    assert precision_of(replace(run_of(None, SHARES), arrays={}), certificate) is None
    without = replace(certificate, events=(PAIRS_EVENT,))
    assert precision_of(run_of(MeasuredPairs((), 900.0), SHARES), without) is None


def test_the_file_is_read_as_it_was_written(certificate: Certificate) -> None:
    found = lines(certificate, MeasuredPairs((FAINT, CLEAR), 900.0))
    content = found.to_csv()
    assert Precision.from_csv(content, "x") == found
    assert Precision.from_csv(content, "x").to_csv() == content
    named = certificate_of(certificate)
    assert found.problems(small(), named) == []


def certificate_of(given: Certificate) -> Certificate:
    return replace(given, events=(ONE_WAY_EVENT, PAIRS_EVENT))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"standard_error": 19.0}, "another noise of counts"),
        ({"column": "other"}, "each column"),
    ],
)
def test_a_line_that_the_certificate_does_not_give_is_a_problem(
    certificate: Certificate, change: dict[str, Any], problem: str
) -> None:
    found = lines(certificate, MeasuredPairs((CLEAR,), 900.0))
    changed = tuple(
        replace(line, **change) if line.kind == "column" else line for line in found.lines
    )
    [text] = Precision(changed).problems(small(), certificate_of(certificate))[:1]
    assert problem in text


def test_less_noise_of_pairs_than_the_plan_has_is_a_problem(certificate: Certificate) -> None:
    assert pairs_precision(PAIRS_EVENT, None) == pytest.approx(1 / 64)
    precise = replace(CLEAR, sd=7.5)  # one pair alone has at least 8
    found = lines(certificate, MeasuredPairs((precise,), 900.0))
    [text] = found.problems(small(), certificate_of(certificate))
    assert "less noise of pairs" in text


def test_groups_and_trends_that_nothing_gives_are_problems(certificate: Certificate) -> None:
    found = lines(certificate, MeasuredPairs((CLEAR,), 900.0))
    strange = PrecisionLine("group", "sex", group="x", measured="counts", standard_error=20.0)
    trend = PrecisionLine("pair", "*", "*", measured="trend")
    problems = Precision((*found.lines, strange, trend)).problems(
        small(), certificate_of(certificate)
    )
    assert len(problems) == 2 and "group" in problems[0] and "trend" in problems[1]


def test_no_noise_no_such_column_and_a_line_twice_are_problems(certificate: Certificate) -> None:
    found = lines(certificate, MeasuredPairs((CLEAR,), 900.0))
    exact = [
        replace(line, standard_error=0.0) if line.measured == "cells" else line
        for line in found.lines
    ]
    strange = PrecisionLine("pair", "sex", "nobody", measured="no")
    twice = next(line for line in found.lines if line.kind == "group")
    for changed, problem in (
        (exact, "less noise of pairs"),
        ([*found.lines, strange], "does not have"),
        ([*found.lines, twice], "twice"),
    ):
        [text] = Precision(tuple(changed)).problems(small(), certificate_of(certificate))
        assert problem in text


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"kind,column\n",
        b"\xff",
        Precision((PrecisionLine("column", "a"),)).to_csv() + b"pair,a,b\n",
        Precision((PrecisionLine("row", "a"),)).to_csv(),
        Precision((PrecisionLine("column", "a", stands_out="perhaps"),)).to_csv(),
        Precision((PrecisionLine("column", "a", cells=1),)).to_csv().replace(b",1,", b",one,"),
        Precision((PrecisionLine("column", "a", people=7.0),)).to_csv().replace(b"7.0", b"nan"),
        Precision((PrecisionLine("column", "a", people=7.0),)).to_csv().replace(b"7.0", b"-7"),
    ],
)
def test_what_is_no_such_file_is_refused(content: bytes) -> None:
    with pytest.raises(ArtifactError, match="^here"):
        Precision.from_csv(content, "here")


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mixture of the demo's patients, and its bundle."""
    folder = tmp_path_factory.mktemp("precise")
    small_office(
        folder, simulate(400, seed=1), Schema.load("demo"), rows=200, seed=2, model="mixture"
    )
    ledger = Ledger(folder / "ledger.sqlite")
    release(folder / "run", folder / "bundle", table=folder / "out.parquet", ledger=ledger)
    return folder


def test_a_release_writes_the_file_and_the_page_says_what_to_read(office: Path) -> None:
    bundle = office / "bundle"
    checks = verify(bundle)
    assert "the stated precision has the noise of the certificate's events" in checks
    found = Precision.from_csv((bundle / "precision.csv").read_bytes(), "precision.csv")
    columns = [line.column for line in found.of("column")]
    pairs = {(line.column, line.other) for line in found.of("pair")}
    assert len(pairs) == len(columns) * (len(columns) - 1) // 2
    [fit] = found.of("fit")
    arrays = Run.load(office / "run").arrays
    assert [fit.cells, fit.missed] == arrays["fitness"][:2].tolist()
    page = said((bundle / "report.html").read_text())
    assert "What you may read from the table" in page and "Standard error of a count" in page


def test_a_forged_line_is_found(office: Path, tmp_path: Path) -> None:
    bundle = Path(shutil.copytree(office / "bundle", tmp_path / "bundle"))
    path = bundle / "precision.csv"
    found = Precision.from_csv(path.read_bytes(), "x")
    better = tuple(
        replace(line, standard_error=line.standard_error / 4) if line.standard_error else line
        for line in found.lines
    )
    path.write_bytes(Precision(better).to_csv())
    forger = Forger(bundle)
    forger.relist()
    text = forger.findings()
    assert "another noise of counts" in text and "less noise of pairs" in text
    path.write_bytes(path.read_bytes() + b" \n")
    forger.relist()
    assert "precision.csv" in forger.findings()
    path.unlink()
    with pytest.raises(VerificationError, match="precision"):
        verify(bundle)


@pytest.mark.parametrize("module_", [module, pairs_module])
def test_the_examples_of_the_docstrings_hold(module_: Any) -> None:
    tried = doctest.testmod(module_)
    assert tried.failed == 0 and tried.attempted > 0
