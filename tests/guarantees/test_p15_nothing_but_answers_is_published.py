"""P15: public quality figures in which something exact, or replayable, stands for an answer.

`publish_quality` has the real rows at hand, so any slip there is a leak: questions made from real
rows, the exact number of rows in an expectation or a figure, noise that follows from the public
seed of the sample. Two checks. With the one function that counts real rows held fixed, two tables
that have nothing in common give the same document, ledger records, progress and words. And the
noise of every answer is what the given source drew, each draw once.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.assessment import publish_quality, published_quality
from dpsynth.certificate import Certificate
from dpsynth.eval import Questionnaire
from dpsynth.ledger import Ledger
from dpsynth.privacy import Answer, Deviation, OsEntropy, SeededEntropy, public_quality, reserved
from dpsynth.schema import Schema
from dpsynth.synthesis import Run
from dpsynth.tables import open_table, simulate

from ..support.small_office import small_office
from .streams import Streams

DEMO = Schema.load("demo")
SAMPLING_SEED = 31
Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a share set aside, its ledger, and a table drawn from it."""
    base = tmp_path_factory.mktemp("office")
    source = simulate(300, seed=1)
    return small_office(base, source, DEMO, rows=400, seed=SAMPLING_SEED, publish_quality=0.3)


def many() -> pd.DataFrame:
    return simulate(260, seed=2)


def few() -> pd.DataFrame:
    """Rows of one patient, all alike."""
    frame = simulate(3, seed=5)
    return pd.concat([frame.iloc[:1]] * 2, ignore_index=True)


def public_counts(cells: Any, size: int, rows: Any) -> Any:
    """Counts that follow from the size of a histogram alone: 40 000 rows, about."""
    uneven = np.arange(size) % 5 + 3
    return (40_000 * uneven // uneven.sum()).astype(np.int64)


@pytest.fixture(autouse=True, scope="module")
def _asked_once() -> Iterator[None]:
    """Make the questions about each table once: a classifier takes seconds to train."""
    of, questionnaires = Questionnaire.of, dict[bytes, Questionnaire]()

    def known(codec: Any, synthetic: Any) -> Questionnaire:
        key = synthetic.tobytes()
        if key not in questionnaires:
            questionnaires[key] = of(codec, synthetic)
        return questionnaires[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Questionnaire, "of", known)
        yield


@pytest.fixture
def nobody_is_counted(monkeypatch: Patch) -> None:
    monkeypatch.setattr(public_quality, "_counted", public_counts)


class Published:
    """What one call let out, and what its noise was."""

    def __init__(self, office: Path, folder: Path, data: pd.DataFrame, seed: int = 3) -> None:
        shutil.copytree(office, folder)
        self.entropy = Streams(seed, releasable=True)
        self.answers: tuple[Answer, ...] = ()
        self.asked: Questionnaire | None = None
        progress: list[tuple[str, float]] = []
        messages: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
        figures = published_quality.figures

        def heard(asked: Any, answers: Any, *rest: Any) -> Any:
            self.asked, self.answers = asked, tuple(answers)
            return figures(asked, answers, *rest)

        ledger = Ledger(folder / "ledger.sqlite")
        logging.getLogger().addHandler(handler)
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(published_quality, "figures", heard)
                publish_quality(
                    folder / "run",
                    folder / "out.parquet",
                    data,
                    ledger=ledger,
                    entropy=self.entropy,
                    progress=lambda stage, part: progress.append((stage, part)),
                )
        finally:
            logging.getLogger().removeHandler(handler)
        entry = ledger.state().entries[-1]
        assert entry.measured is not None
        self.out: dict[str, Any] = {
            "document": json.loads((folder / "run" / "quality.json").read_text()),
            "measured": (entry.measured.table, entry.measured.figures),
            "progress": progress,
            "said": messages,
        }


def differing(office: Path, folder: Path) -> set[str]:
    """What is published otherwise of many rows than of few."""
    one, other = (
        Published(office, folder / name, data).out
        for name, data in (("many", many()), ("few", few()))
    )
    parts = {part for part in one if one[part] != other[part]}
    return parts | {
        key for key in one["document"] if one["document"][key] != other["document"][key]
    }


@pytest.mark.usefixtures("nobody_is_counted")
def test_the_document_holds_nothing_but_answers(office: Path, tmp_path: Path) -> None:
    assert differing(office, tmp_path) == set()


def real_questions(patch: Patch) -> None:
    """The questionnaire is made from the real rows."""
    real = iter((many(), few()))
    patch.setattr(
        published_quality,
        "open_synthetic",
        lambda table, schema: open_table(next(real), schema),
    )


def exact_rows(patch: Patch) -> None:
    """The figures are for the exact number of real rows."""
    read, figures, rows = published_quality.read_cohort, published_quality.figures, list[int]()

    def reading(*given: Any) -> Any:
        cohort = read(*given)
        rows.append(int(cohort.mask.sum()))
        return cohort

    patch.setattr(published_quality, "read_cohort", reading)
    patch.setattr(published_quality, "figures", lambda a, b, c, _: figures(a, b, c, rows[-1]))


def exact_total(patch: Patch) -> None:
    """Expected counts are of the exact number of rows."""
    exact = Deviation.exact
    patch.setattr(
        Deviation,
        "exact",
        lambda self, rows, total: exact(self, rows, float(len(rows))),
    )


def exact_units_in_words(patch: Patch) -> None:
    ask = published_quality.ask

    def asking(cohort: Any, *rest: Any) -> Any:
        logging.getLogger("dpsynth").warning("asking %d units", len(cohort.mask))
        return ask(cohort, *rest)

    patch.setattr(published_quality, "ask", asking)


@pytest.mark.usefixtures("nobody_is_counted")
@pytest.mark.parametrize(
    ("twin", "part"),
    [
        (real_questions, "columns"),
        (exact_rows, "rows"),
        (exact_total, "statistics"),
        (exact_units_in_words, "said"),
    ],
)
def test_something_exact_in_the_place_of_an_answer_is_caught(
    office: Path, tmp_path: Path, twin: Callable[[Patch], None], part: str, monkeypatch: Patch
) -> None:
    twin(monkeypatch)
    assert part in differing(office, tmp_path)


# Noise from the source that was given ------------------------------------------------------------


def replayable(published: Published) -> list[str]:
    """Say which answers have other noise than the source drew for them."""
    assert published.asked is not None
    drawn = published.entropy.drawn["discrete_gaussian"]
    scales = [sigma for sigma, _ in published.entropy.asked["discrete_gaussian"]]
    total = max(1.0, float(published.answers[0].counts[0]))
    bare = [public_counts(None, 1, None)]
    bare += [question.exact(np.zeros((0, 1)), total) for question in published.asked.questions]
    if len(drawn) != len(published.answers):
        return ["draws and answers are not as many"]
    found = []
    for number, answer in enumerate(published.answers):
        if not np.array_equal(answer.counts - bare[number], drawn[number]):
            found.append(f"answer {number}: other noise than was drawn")
        if scales[number] != answer.sigma:
            found.append(f"answer {number}: another scale than is stated")
    return found


@pytest.mark.usefixtures("nobody_is_counted")
def test_each_answer_has_the_noise_that_the_source_drew(office: Path, tmp_path: Path) -> None:
    published = Published(office, tmp_path / "one", many())
    assert replayable(published) == []
    assert published.asked is not None
    event = reserved(Certificate.from_dict(Run.load(office / "run").certificate).events)
    assert event is not None
    sigmas = [event.sigma_for(part) for part in published.asked.parts]
    assert [answer.sigma for answer in published.answers] == sigmas


@pytest.mark.usefixtures("nobody_is_counted")
def test_two_measurements_have_two_noises(office: Path, tmp_path: Path) -> None:
    """All that is public is equal, the seed of the sample too; what was drawn is not."""
    one, other = (Published(office, tmp_path / str(seed), many(), seed) for seed in (3, 4))
    assert one.out["measured"][0] == other.out["measured"][0]
    equal = [
        np.array_equal(a.counts, b.counts) for a, b in zip(one.answers, other.answers, strict=True)
    ]
    assert sum(equal) <= len(equal) // 4  # single numbers may fall together by chance


@pytest.mark.usefixtures("nobody_is_counted")
def test_noise_by_the_public_seed_is_caught(
    office: Path, tmp_path: Path, monkeypatch: Patch
) -> None:
    ask = published_quality.ask

    def by_the_seed(*given: Any) -> Any:
        return ask(*given[:-1], SeededEntropy(SAMPLING_SEED))

    monkeypatch.setattr(published_quality, "ask", by_the_seed)
    assert replayable(Published(office, tmp_path / "one", many())) != []


def test_without_a_source_the_operating_system_is_it(
    office: Path, tmp_path: Path, monkeypatch: Patch
) -> None:
    """The source of a measurement is made anew, of the one kind that cannot be replayed."""
    sources: list[Any] = []

    class Noted(OsEntropy):
        def __init__(self) -> None:
            sources.append(self)

    used: list[Any] = []
    ask = published_quality.ask
    monkeypatch.setattr(published_quality, "OsEntropy", Noted)
    monkeypatch.setattr(
        published_quality, "ask", lambda *given: (used.append(given[-1]._entropy), ask(*given))[1]
    )
    shutil.copytree(office, tmp_path / "one")
    ledger = Ledger(tmp_path / "one" / "ledger.sqlite")
    publish_quality(tmp_path / "one/run", tmp_path / "one/out.parquet", many(), ledger=ledger)
    assert sources == used and len(sources) == 1
