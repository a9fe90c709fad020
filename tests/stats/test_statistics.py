"""Statistics end to end: charged before reading, true within their intervals, checked on disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsynth
from dpsynth.errors import ArtifactError, BudgetError, DpsynthWarning, InputError
from dpsynth.ledger import Ledger
from dpsynth.privacy import AttackRates, LaplaceCounts, RowSums, SeededEntropy
from dpsynth.stats import Answers, StatisticsRequest
from dpsynth.stats.statistic import FINE, Rows
from dpsynth.tables import simulate

ENTRIES: list[dict[str, Any]] = [
    {"name": "by sex", "count": "patients", "by": ["sex"]},
    {"name": "visits by sex", "count": "rows", "by": ["sex"]},
    {"name": "visits by sex and age", "count": "rows", "by": ["sex", {"age": [40, 60]}]},
    {"name": "pressure", "mean": "sbp", "by": ["sex"]},
    {"name": "diabetics", "proportion": {"diabetes": ["True"]}},
    {"name": "age", "quantiles": "age", "shares": [0.1, 0.5]},
    {"name": "age of patients", "quantiles": "age", "shares": [0.5], "per": "patient"},
    {"name": "pressure of patients", "mean": "sbp", "per": "patient"},
    {"name": "commonest", "top": "sex", "most": 1},
]
BUDGET = {"epsilon": 2.0, "delta": 1e-6, "dataset": "cohort"}


@pytest.fixture(scope="module")
def request_() -> StatisticsRequest:
    return StatisticsRequest.from_dict({"schema": "demo", "statistics": ENTRIES})


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return simulate(3000, seed=1)


@pytest.fixture(scope="module")
def found(request_: StatisticsRequest, rows: pd.DataFrame) -> Answers:
    return dpsynth.statistics(
        rows, request_, **BUDGET, without_ledger=True, entropy=SeededEntropy(1)
    )


def test_intervals_hold_what_is_true(found: Answers, rows: pd.DataFrame) -> None:
    sexes = rows.drop_duplicates("patient_id")["sex"].value_counts()
    table = found.table("by sex").set_index("sex")
    for sex, number in sexes.items():
        assert table.loc[sex, "lower"] - 20 <= number <= table.loc[sex, "upper"] + 20
    means = found.table("pressure").set_index("sex")
    pressure = pd.to_numeric(rows["sbp"], errors="coerce")
    for sex in sexes.index:
        true = pressure[rows["sex"] == sex].mean()
        assert abs(means.loc[sex, "mean"] - true) < 6
        assert means.loc[sex, "lower"] < means.loc[sex, "mean"] < means.loc[sex, "upper"]
    ages = found.table("age").set_index("share")
    assert abs(ages.loc[0.5, "value"] - pd.to_numeric(rows["age"]).median()) <= 4
    own = pressure.groupby(rows["patient_id"]).mean().mean()
    assert abs(found.table("pressure of patients").loc[0, "mean"] - own) < 2
    widths = [
        table["upper"] - table["lower"] for table in (means, found.table("pressure of patients"))
    ]
    assert widths[1].max() < 0.5 * widths[0].max()  # a patient counts once, not once a row
    assert found.table("commonest")["sex"].tolist() == [sexes.index[0]]


def test_each_event_states_what_substitution_does(found: Answers) -> None:
    words = {
        True: "moves the answer at most 2 times as far",
        False: "moves the answer at most 1.414 times as far",
    }
    for event in found.certificate.events:
        (stated,) = [
            claim
            for claim in found.certificate.exact
            if claim.startswith(f"event '{event.name}'") and "takes another's place" in claim
        ]
        assert words[event.signed] in stated if isinstance(event, RowSums) else "2 times" in stated


def test_tables_of_counts_agree(found: Answers) -> None:
    one = found.table("visits by sex").set_index("sex")["count"]
    two = found.table("visits by sex and age").groupby("sex")["count"].sum()
    for sex in one.index:
        assert one[sex] == pytest.approx(two[sex], abs=0.3)  # rounded to tenths
    gains = {result.name: result.gain for result in found.results}
    assert gains["visits by sex"] > 0.1
    assert gains["by sex"] == gains["pressure"] == 0  # a patient may have visits in several cells


def test_the_ledger_is_charged_before_a_row_is_read(
    request_: StatisticsRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, states = Ledger.create(tmp_path / "ledger.sqlite"), []

    def read(*_: Any, **__: Any) -> Any:
        states.extend(entry.status for entry in ledger.entries())
        raise InputError("unreadable")

    monkeypatch.setattr("dpsynth.stats.answering.read_cohort", read)
    with pytest.raises(InputError, match="unreadable"):
        dpsynth.statistics(simulate(50, seed=1), request_, **BUDGET, ledger=ledger)
    assert states == ["reading"]
    assert [entry.status for entry in ledger.entries()] == ["failed"]


def test_what_cannot_be_written_is_not_charged(request_: StatisticsRequest, tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match="exists"):
        dpsynth.statistics(
            simulate(50, seed=1), request_, **BUDGET, ledger=ledger, output=tmp_path / "out"
        )
    assert ledger.entries() == []


def test_a_policy_binds_statistics_as_it_does_fits(
    request_: StatisticsRequest, tmp_path: Path
) -> None:
    from dpsynth.policy import Policy

    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    document = {"dpsynth_policy": 1, "name": "office", "delta": 1e-5}
    document |= {"caps": {"total": {"epsilon": 1.0, "basis": "board"}}}
    policy = Policy.from_dict(document, "test")
    with pytest.raises(BudgetError):
        dpsynth.statistics(simulate(50, seed=1), request_, **BUDGET, ledger=ledger, policy=policy)


@pytest.fixture
def folder(request_: StatisticsRequest, rows: pd.DataFrame, tmp_path: Path) -> Path:
    dpsynth.statistics(
        rows.head(400),
        request_,
        **BUDGET,
        ledger=Ledger.create(tmp_path / "ledger.sqlite"),
        output=tmp_path / "out",
    )
    return tmp_path / "out"


def test_what_is_written_is_read_back_and_follows_from_the_answers(folder: Path) -> None:
    loaded = Answers.load(folder)
    assert loaded.stamps == () and loaded.certificate.ledger is not None
    assert (folder / "01-by-sex.csv").read_bytes() == loaded.files()["01-by-sex.csv"]
    described = json.loads((folder / "04-pressure.json").read_text())
    assert [event["kind"] for event in described["events"]] == ["row_sums", "row_sums"]


CHANGES: dict[str, Callable[[Path], None]] = {
    "a cell of a table": lambda folder: _edit(folder / "01-by-sex.csv", b"female", b"femalf"),
    "an answer": lambda folder: _edit(folder / "statistics.json", b'"answers"', b'"answerz"'),
    "the certificate": lambda folder: _edit(folder / "privacy.json", b"2.0", b"1.0"),
    "a missing table": lambda folder: (folder / "04-pressure.csv").unlink(),
}


def _edit(path: Path, before: bytes, after: bytes) -> None:
    content = path.read_bytes()
    assert before in content
    path.write_bytes(content.replace(before, after, 1))


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_found(change: str, folder: Path) -> None:
    CHANGES[change](folder)
    with pytest.raises(ArtifactError):
        Answers.load(folder)


def test_a_certificate_of_less_is_found(folder: Path) -> None:
    """Whoever renews the digest too must still account for the events of the request."""
    loaded = Answers.load(folder)
    less = replace(loaded.certificate, events=loaded.certificate.events[1:])
    forged = replace(loaded, certificate=less)
    (folder / "statistics.json").write_bytes(forged_files(forged))
    with pytest.raises(ArtifactError, match="exactly the events"):
        Answers.load(folder)


FORGED: dict[str, Callable[[Answers], Answers]] = {
    "an answer more": lambda s: replace(s, numbers={**s.numbers, "raw": [np.arange(3)]}),
    "a part more": lambda s: replace(
        s, numbers={**s.numbers, "by sex": [*s.numbers["by sex"], np.arange(3)]}
    ),
    "a place below 0": lambda s: replace(
        s, numbers={**s.numbers, "commonest: choice": [np.array([-1])]}
    ),
    "a lesser cost": lambda s: replace(
        s, certificate=replace(s.certificate, composed_epsilon=0.01)
    ),
    "a lesser attack rate": lambda s: replace(
        s, certificate=replace(s.certificate, attack_rates=AttackRates(0.0101, 0.101, 0.001))
    ),
    "a cost above the budget": lambda s: replace(
        s, certificate=replace(s.certificate, composed_epsilon=9.0)
    ),
    "no stamp": lambda s: replace(s, stamps=()),
    "no stamp of the noise": lambda s: replace(s, stamps=("no-ledger",)),
    "no stamp of the ledger": lambda s: replace(s, stamps=("seeded-entropy",)),
}


@pytest.mark.parametrize("change", FORGED)
def test_what_nobody_paid_for_does_not_load(change: str, found: Answers, tmp_path: Path) -> None:
    """Though every file follows from the document: the document is not of a paid request."""
    for name, content in FORGED[change](found).files().items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ArtifactError):
        Answers.load(tmp_path)


def test_values_chosen_twice_are_no_ranking() -> None:
    request = StatisticsRequest.from_dict(
        {"schema": "demo", "statistics": [{"name": "t", "top": "ward", "most": 2}]}
    )
    (ranking,) = request.statistics
    numbers = {"t: numbers": [np.array([5, 4])]}
    assert ranking.fits({"t: choice": [np.array([3, 1])], **numbers})
    for wrong in ([1, 1], [1, 5], [1], [0, 1, 2]):
        assert not ranking.fits({"t: choice": [np.array(wrong)], **numbers})


def test_a_request_of_another_codec_is_read_anew(
    request_: StatisticsRequest, rows: pd.DataFrame
) -> None:
    """What is asked is what is written: nothing else of a request in memory is used."""
    other = replace(request_, statistics=(), confidence=0.5)
    answered = dpsynth.statistics(
        rows, other, **BUDGET, without_ledger=True, entropy=SeededEntropy(1)
    )
    assert set(answered.numbers) == set(answered.events)
    assert answered.request.confidence == 0.95


def forged_files(forged: Answers) -> bytes:
    from dpsynth._util.strict_json import written

    return written(forged.document)


def test_an_entry_that_stayed_open_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_line: Callable[..., Any]
) -> None:
    def lost(*_: object, **__: object) -> None:
        raise BudgetError("the server is gone")

    ledger = Ledger.create(tmp_path / "open.sqlite")
    monkeypatch.setenv("DPSYNTH_LEDGER", str(tmp_path / "open.sqlite"))
    request = StatisticsRequest.from_dict({"schema": "demo", "statistics": ENTRIES[:1]})
    place = tmp_path / "statistics"
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "charge", lost)
        with pytest.warns(DpsynthWarning, match="ledger close"):
            dpsynth.statistics(simulate(50, seed=1), request, **BUDGET, ledger=ledger, output=place)
    refused = command_line("release", str(place), "-o", str(tmp_path / "bundle"))
    assert refused.code == 4 and "still open" in refused.err
    assert command_line("ledger", "close", str(place)).code == 0
    assert command_line("release", str(place), "-o", str(tmp_path / "bundle")).code == 0


def test_other_noise_than_was_planned_does_not_load(rows: pd.DataFrame, tmp_path: Path) -> None:
    request = StatisticsRequest.from_dict({"schema": "demo", "statistics": ENTRIES[:1]})
    source = SeededEntropy(3)
    made = dpsynth.statistics(
        rows.head(300), request, **BUDGET, without_ledger=True, entropy=source
    )
    (event,) = made.certificate.events
    assert isinstance(event, LaplaceCounts) and "Laplace" in " ".join(made.certificate.exact)
    assert "Laplace" in made.files()["report.html"].decode()
    assert Answers.load(made.save(tmp_path / "sound")).numbers.keys() == made.numbers.keys()
    changes = {
        "no longer of patients": replace(event, once=False),
        "of one row": replace(event, rows_per_unit=1),
        "of less noise": replace(event, scale=event.scale / 2),
    }
    for words, change in changes.items():
        forged = replace(made, certificate=replace(made.certificate, events=(change,)))
        forged.save(tmp_path / words)
        with pytest.raises(ArtifactError, match="certificate"):
            Answers.load(tmp_path / words)


def test_no_answer_is_without_noise(request_: StatisticsRequest, rows: pd.DataFrame) -> None:
    """Two releases of the same rows differ in every array that is not a choice."""
    first, again = (
        dpsynth.statistics(
            rows, request_, **BUDGET, without_ledger=True, entropy=SeededEntropy(seed)
        )
        for seed in (1, 2)
    )
    for name, parts in first.numbers.items():
        if not name.endswith("choice"):
            assert not any(
                np.array_equal(a, b) for a, b in zip(parts, again.numbers[name], strict=True)
            )


def test_the_command_plans_and_answers(
    command_line: Callable[..., Any], tmp_path: Path, rows: pd.DataFrame
) -> None:
    (tmp_path / "request.json").write_text(
        json.dumps({"schema": "demo", "statistics": ENTRIES[:3]})
    )
    rows.head(200).to_csv(tmp_path / "extract.csv", index=False)
    budget = ("--epsilon", "1", "--delta", "1e-6")
    planned = command_line("stats", "request.json", *budget)
    assert planned.code == 0 and "by sex" in planned.out and "within" in planned.out
    done = command_line(
        "stats", "request.json", "extract.csv", *budget, "--dataset", "d", "-o", "out"
    )
    assert done.code == 0, done.err
    assert Answers.load(tmp_path / "out").certificate.epsilon == 1
    assert [entry.status for entry in Ledger().entries()] == ["charged"]
    wondered = command_line("stats", "request.json", "--delta", "1e-6", "--what-if", "--json")
    assert wondered.code == 0 and '"4"' in wondered.out
    both = command_line("stats", "request.json", *budget, "--what-if")
    assert both.code == 2 and "leave out" in both.err
    missing = command_line("stats", "request.json", "extract.csv", *budget)
    assert missing.code == 2 and "--dataset" in missing.err


def test_a_unit_counts_the_same_however_many_of_its_cells_are_missing() -> None:
    units = np.array([0, 0, 0, 2])
    rows = Rows(units, np.zeros((4, 1), np.uint16))
    known = np.array([True, False, True, True])
    assert rows.weights(known).tolist() == [FINE // 2, 0, FINE // 2, FINE]
    none = Rows(np.zeros(0, np.int64), np.zeros((0, 1), np.uint16))
    assert none.weights(np.zeros(0, bool)).tolist() == []


def test_answers_that_were_paid_for_are_saved_elsewhere_if_their_folder_is_lost(
    request_: StatisticsRequest, rows: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    save = Answers.save

    def fails_at_its_target(found: Answers, folder: Path) -> Path:
        if Path(folder).name == "out":
            raise OSError(28, "No space left on device")
        return save(found, folder)

    monkeypatch.setattr(Answers, "save", fails_at_its_target)
    with pytest.raises(InputError, match="Nothing is lost: the statistics"):
        dpsynth.statistics(
            rows.head(100), request_, **BUDGET, ledger=ledger, output=tmp_path / "out"
        )
    (entry,) = ledger.entries()
    [kept] = [path for path in tmp_path.iterdir() if (path / "statistics.json").is_file()]
    assert entry.status == "charged" and Answers.load(kept).digest == entry.run
