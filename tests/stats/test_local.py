"""The local model end to end: what leaves the source, what is estimated, and what is refused."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth._util.strict_json import digest
from dpsynth._util.strict_json import written as as_bytes
from dpsynth.errors import ArtifactError, InputError, TableError, VerificationError
from dpsynth.privacy import SeededEntropy
from dpsynth.schema import Schema
from dpsynth.stats import Answers, Randomiser, Reports, estimate, perturb, verify_answers
from dpsynth.stats.local import RESPONSE, UNARY, count_interval, estimated, share_interval
from dpsynth.stats.perturbing import one_row_each
from dpsynth.tables import simulate

COLUMNS = ["sex", "diabetes", "age"]
CUTS = {"age": [40, 65]}
CANARY = "zzcanaryzz"


@pytest.fixture(scope="module")
def schema() -> Schema:
    return one_row_each(Schema.load("demo"))


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return simulate(300, seed=1).drop_duplicates("patient_id")


@pytest.fixture
def written(schema: Schema, rows: pd.DataFrame, tmp_path: Path) -> Path:
    perturb(rows, schema, COLUMNS, epsilon=3, cuts=CUTS, output=tmp_path / "p.csv")
    return tmp_path / "p.csv"


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_rule_takes_the_lower_variance(epsilon: float) -> None:
    for size in range(2, 70):
        one = Randomiser.chosen(size, epsilon)
        ratio = Fraction(one.odds, 2**24)
        assert one.kind == (RESPONSE if size - 2 <= 3 * ratio else UNARY)
        for kind in (RESPONSE, UNARY):
            assert one.variance <= Randomiser(kind, size, epsilon).variance


def test_only_the_perturbed_columns_leave(written: Path, rows: pd.DataFrame) -> None:
    with written.open(newline="") as file:
        table = list(csv.reader(file))
    assert table[0] == COLUMNS and len(table) == len(rows) + 1
    settings = json.loads(Path(f"{written}.json").read_text())
    labels = [set(column["categories"]) for column in settings["columns"]]
    assert all(
        set(cells) <= known
        for cells, known in zip(zip(*table[1:], strict=True), labels, strict=True)
    )
    assert [column["epsilon"] for column in settings["columns"]] == [1.0] * 3
    assert settings["columns"][2]["categories"][:2] == ["below 40", "40 to below 65"]
    assert set(settings) == {"format", "version", "schema", "epsilon", "columns", "stamps"}
    assert settings["stamps"] == []


def test_the_order_of_people_is_lost_and_missing_is_a_category(schema: Schema) -> None:
    column = next(c for c in schema.modelled if c.is_categorical and c.nullable)
    rows = simulate(200, seed=1).drop_duplicates("patient_id").copy()
    rows[column.name] = None
    found = perturb(rows, schema, [column.name], epsilon=20, entropy=SeededEntropy(1))
    assert found.settings.columns[0].labels[-1] == "(missing)"
    assert (found.reports[0] == len(found.settings.columns[0].labels) - 1).mean() > 0.99
    assert found.settings.stamps == ("seeded-entropy",)
    half = len(rows) // 2
    rows["sex"] = ["female"] * half + ["male"] * (len(rows) - half)
    order = perturb(rows, schema, ["sex"], epsilon=20, entropy=SeededEntropy(1)).reports[0]
    assert 0 < order[:half].sum() < half


@pytest.mark.parametrize("kind", [RESPONSE, UNARY])
def test_what_is_written_is_read_back_and_files_are_joined(
    kind: str, schema: Schema, rows: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Randomiser, "chosen", classmethod(lambda cls, *of: cls(kind, *of)))
    made = [
        perturb(part, schema, ["sex"], epsilon=2, output=tmp_path / f"{place}.csv")
        for place, part in enumerate((rows.head(100), rows.tail(50)))
    ]
    files = [tmp_path / "0.csv", tmp_path / "1.csv"]
    longest = csv.field_size_limit()
    assert (Reports.load(files[0]).reports[0] == made[0].reports[0]).all()
    assert csv.field_size_limit() == longest  # of every other reader in the process
    found = estimate(files, output=tmp_path / "out")
    assert found.numbers["people"] == 150
    pd.testing.assert_frame_equal(found.table("estimates"), estimate(made).table("estimates"))
    document = json.loads((tmp_path / "out/estimates.json").read_text())
    assert document["people"] == 150 and len(document["rows"]) == len(found.table("estimates"))
    assert (tmp_path / "out/estimates.csv").read_text().startswith("column,category,count,lower")


def binomial(count: int, chance: float) -> Any:
    """The law of a binomial, ``[count + 1]``."""
    return np.array(
        [math.comb(count, n) * chance**n * (1 - chance) ** (count - n) for n in range(count + 1)]
    )


@pytest.mark.parametrize("kind", [RESPONSE, UNARY])
@pytest.mark.parametrize("size", [2, 6])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_estimates_have_no_bias_and_intervals_cover(kind: str, size: int, epsilon: float) -> None:
    """By the exact law of the supporting reports, a sum of two binomials."""
    one, people = Randomiser(kind, size, epsilon), 60
    p, q = float(one.own), float(one.other)
    every = np.arange(people + 1)
    counts, shares = (
        count_interval(one, every, people, 0.95),
        share_interval(one, every, people, 0.95),
    )
    estimates = (every - people * q) / (p - q)
    assert estimated(one, every, people, 0.95)["count"] == pytest.approx(estimates, abs=0.051)
    for own in (0, 1, 7, 30, 55, 60):
        law = np.convolve(
            binomial(own, p),
            binomial(people - own, q),
        )
        assert law @ estimates == pytest.approx(own, abs=1e-6)
        assert law[(counts[0] <= own) & (own <= counts[1])].sum() >= 0.945
        share = own / people
        law = binomial(people, share * p + (1 - share) * q)
        assert law[(shares[0] <= share) & (share <= shares[1])].sum() >= 0.95


def test_intervals_of_reports_cover() -> None:
    one, codes = Randomiser.chosen(30, 1.0), np.arange(2000) % 4
    truth, held = np.bincount(codes, minlength=30), []
    for seed in range(20):
        supports = one.supports(one.reports(codes, SeededEntropy(seed)))
        lower, upper = count_interval(one, supports, len(codes), 0.95)
        held.append(((lower <= truth) & (truth <= upper)).mean())
    assert np.mean(held) > 0.9


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"columns": []}, "at least one column"),
        ({"columns": ["sex", "sex"]}, "named twice"),
        ({"columns": ["sexx"], "cuts": {}}, "did you mean 'sex'"),
        ({"columns": ["age"], "cuts": {}}, "no list of categories"),
        ({"columns": ["sex"], "cuts": {"age": [40]}}, "not perturbed"),
        ({"columns": ["sex"], "cuts": {"sex": [40]}}, "no numbers to cut"),
        ({"columns": ["age"], "cuts": {"age": [65, 40]}}, "rising"),
        ({"columns": ["age"], "cuts": {"age": [40.5]}}, "nearest place"),
        ({"columns": ["sex"], "cuts": {}, "epsilon": 0}, "above 0"),
        ({"columns": ["sex"], "cuts": {}, "epsilon": float("nan")}, "above 0"),
        ({"columns": ["sex"], "cuts": {}, "epsilon": 30}, "column 'sex': the epsilon"),
    ],
)
def test_mistakes_are_named(
    schema: Schema, rows: pd.DataFrame, change: dict[str, Any], words: str
) -> None:
    asked: dict[str, Any] = {"columns": COLUMNS, "epsilon": 3, "cuts": CUTS} | change
    with pytest.raises(InputError, match=words) as error:
        perturb(rows, schema, asked.pop("columns"), **asked)
    assert "\n" not in str(error.value)


def test_a_person_has_one_row(rows: pd.DataFrame, schema: Schema) -> None:
    with pytest.raises(InputError, match="each person has one row"):
        perturb(rows, "demo", ["sex"], epsilon=1)
    several = replace(schema, unit=replace(schema.unit, person="patient", max_units=2))
    with pytest.raises(InputError, match="each person has one row"):
        perturb(rows, several, ["sex"], epsilon=1)
    with pytest.raises(InputError, match="a single one"):
        perturb(rows, "clinic", ["sex"], epsilon=1)


def test_nothing_is_half_written(
    schema: Schema, rows: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise InputError("disk full")

    path = tmp_path / "p.csv"
    monkeypatch.setattr("dpsynth.stats.local.write_new", fail)
    with pytest.raises(InputError, match="disk full"):
        perturb(rows, schema, ["sex"], epsilon=1, output=path)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    Path(f"{path}.json").write_text("{}")
    with pytest.raises(InputError, match="exists"):
        perturb(rows, schema, ["sex"], epsilon=1, output=path)
    assert not path.exists()


def test_damaged_reports_are_refused_without_a_cell(written: Path) -> None:
    beside, content = Path(f"{written}.json"), written.read_text()
    header, first, rest = content.split("\n", 2)
    for table in (
        f"{header}\n{CANARY},{first.split(',', 1)[1]}\n{rest}",
        f"{header}\n{first},{CANARY}\n{rest}",
        f"{CANARY}\n{rest}",
        f"{header}\n",
        f'{header}\n"{CANARY}',
    ):
        written.write_text(table)
        with pytest.raises(TableError) as error:
            estimate(written)
        assert CANARY not in str(error.value)
    written.write_text(content)
    settings = json.loads(beside.read_text())
    for change in ({"epsilon": 2.9}, {"columns": []}, {"version": 2}, {"more": 1}):
        beside.write_text(json.dumps(settings | change))
        with pytest.raises(ArtifactError):
            estimate(written)
    beside.write_text(json.dumps(settings | {"schema": "other"}))
    with pytest.raises(InputError, match="different settings"):
        estimate([Reports.load(written), replace_settings(Reports.load(written))])
    with pytest.raises(InputError, match="confidence"):
        estimate(written, confidence=1.0)


def replace_settings(reports: Reports) -> Reports:
    return replace(reports, settings=replace(reports.settings, schema="demo"))


def test_the_commands(command_line: Callable[..., Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    table = {"gender": rng.integers(1, 3, 90), "height": rng.integers(130, 200, 90)}
    pd.DataFrame(table | {"note": CANARY}).to_csv(tmp_path / "a.csv", index=False)
    asked = ("local", "perturb", "cardio", "a.csv", "--columns", "gender,height", "--epsilon", "2")
    dialect = Schema.load("cardio").dialect.delimiter
    text = (tmp_path / "a.csv").read_text().replace(",", dialect)
    (tmp_path / "a.csv").write_text(text)
    done = command_line(*asked, "--cuts", "height=150,170", "-o", "p.csv", "--json")
    assert done.code == 0 and done.err == "" and done.json["kind"] == "dpsynth.local-perturb"
    assert CANARY not in (tmp_path / "p.csv").read_text() + done.out
    shown = command_line("local", "estimate", "p.csv", "-o", "out")
    assert shown.code == 0 and "150 to below 170" in shown.out and "people: 90" in shown.out
    assert command_line("local", "estimate", "p.csv", "--json").json["people"] == 90
    again = command_line(*asked, "--cuts", "height=150,170", "-o", "p.csv")
    assert again.code == 2 and "exists" in again.err
    wrong = command_line(*asked, "--cuts", "height", "-o", "q.csv")
    assert wrong.code == 2 and "--cuts" in wrong.err


def test_estimates_are_verified_as_other_answers_are(
    written: Path, command_line: Callable[..., Any], tmp_path: Path
) -> None:
    found = estimate(written, output=tmp_path / "out")
    read = Answers.load(tmp_path / "out")
    assert read.document == found.document and read.stamps == ()
    assert len(verify_answers(tmp_path / "out")) == 2
    done = command_line("verify", "out")
    assert done.code == 0 and "numbers of reports" in done.out
    held = command_line("verify", "out", "--ledger")
    assert held.code != 0
    released = command_line("release", "out", "-o", "bundle")
    assert released.code == 2 and "no ledger charges the estimates" in released.err
    page = (tmp_path / "out" / "report.html").read_text()
    assert "randomised" in page and "20.09" in page  # e^3, at most
    (tmp_path / "out" / "estimates.csv").write_text("column\n")
    with pytest.raises(VerificationError, match="was changed"):
        verify_answers(tmp_path / "out")


FORGED: dict[str, Callable[[dict[str, Any]], object]] = {
    "a report more": lambda one: one["supports"]["sex"].__setitem__(
        0, one["supports"]["sex"][0] + 1
    ),
    "a category more": lambda one: one["supports"]["sex"].append(0),
    "a column less": lambda one: one["supports"].pop("sex"),
    "nobody": lambda one: one.update(people=0),
    "a cost of a column above that of all": lambda one: one["settings"].update(epsilon=0.1),
    "a stamp of another kind": lambda one: one.update(stamps=["no-ledger"]),
    "an interval without an end": lambda one: one.update(confidence=1.0),
}


@pytest.mark.parametrize("change", FORGED)
def test_numbers_that_no_reports_have_do_not_load(
    change: str, written: Path, tmp_path: Path
) -> None:
    estimate(written, output=tmp_path / "out")
    path = tmp_path / "out" / "local.json"
    document = json.loads(path.read_text())
    document.pop("sha256")
    FORGED[change](document)
    path.write_bytes(as_bytes(document | {"sha256": digest(document)}))
    with pytest.raises(ArtifactError):
        Answers.load(tmp_path / "out")
