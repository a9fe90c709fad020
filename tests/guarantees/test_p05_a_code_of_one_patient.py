"""P05: rare codes "protected" by a threshold on what was observed.

The check, with delta = 1e-2: in 20 000 runs, patients whose codes nobody else has are shown by one
of them no more often than delta allows: the lower Clopper-Pearson bound (99.9 %) of the rate is at
most delta. The probability itself, summed term by term, is at most delta too. The broken twins: a
threshold that does not follow from delta, one code counted as if there were no others, codes beyond
the bound, and exact counts, with which one patient more decides whether a code is listed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy.stats import beta

from dpsynth.encoding import code_search, find_codes
from dpsynth.errors import InputError
from dpsynth.privacy import (
    CodeDiscovery,
    Occurrences,
    OsEntropy,
    PaidEntropy,
    SeededEntropy,
    discovery,
    select_codes,
)
from dpsynth.privacy import discovery as events
from dpsynth.privacy.accounting import delta
from dpsynth.privacy.discovery_events import MASS
from dpsynth.tables import open_table

from ..support.bare_counts import Silence
from ..support.discovered_ward import DEVICE, RARE, discovered_ward, ward
from ..support.discovered_ward import patients as rows_of
from ..support.quick_fit import quick_fit

RUNS, CONFIDENCE, DELTA = 20_000, 0.999, 1e-2
ALONE = CodeDiscovery("codes", 1, 1, delta=DELTA, noise_multiplier=1.2)
SEVERAL = replace(ALONE, columns=3, rows_per_unit=4)

Mechanism = Callable[[Occurrences, CodeDiscovery], Any]


def sound(occurrences: Occurrences, event: CodeDiscovery) -> Any:
    return select_codes(occurrences, event, SeededEntropy(7))


def fixed_threshold(occurrences: Occurrences, event: CodeDiscovery) -> Any:
    """Broken twin: a code is listed from three patients on, whatever the noise."""
    with patch.object(CodeDiscovery, "threshold", 3 * MASS):
        return sound(occurrences, event)


def as_if_alone(occurrences: Occurrences, event: CodeDiscovery) -> Any:
    """Broken twin: a threshold for patients with one code, and patients have twelve."""
    threshold = replace(event, columns=1, rows_per_unit=1).threshold
    with patch.object(CodeDiscovery, "threshold", threshold):
        return sound(occurrences, event)


def in_full(occurrences: Occurrences, event: CodeDiscovery) -> Any:
    """Broken twin: each of a patient's codes counts as a whole patient."""
    with patch.object(discovery, "weight", lambda codes: MASS):
        return sound(occurrences, replace(event, columns=1, rows_per_unit=12))


def shown(mechanism: Mechanism, event: CodeDiscovery, codes: int) -> int:
    """In how many of the runs one of a patient's own codes is listed: a patient is a run."""
    units = np.repeat(np.arange(RUNS), codes)
    found = mechanism(Occurrences(units, np.arange(RUNS * codes)), event)
    return len(np.unique(found.codes // codes))


def at_least(hits: int) -> float:
    """Lower Clopper-Pearson bound of a rate."""
    return float(beta.ppf(1 - CONFIDENCE, hits, RUNS - hits + 1)) if hits else 0.0


@pytest.mark.parametrize(("event", "codes"), [(ALONE, 1), (SEVERAL, 1), (SEVERAL, 12)])
def test_codes_of_one_patient_show_with_at_most_delta(event: CodeDiscovery, codes: int) -> None:
    assert at_least(shown(sound, event, codes)) <= DELTA


@pytest.mark.parametrize(
    ("twin", "event", "codes"),
    [(fixed_threshold, ALONE, 1), (as_if_alone, SEVERAL, 12), (in_full, SEVERAL, 12)],
)
def test_the_check_catches_broken_twins(twin: Mechanism, event: CodeDiscovery, codes: int) -> None:
    assert at_least(shown(twin, event, codes)) > DELTA


def test_codes_beyond_the_bound_are_refused_and_would_show() -> None:
    units, codes = np.zeros(200, dtype=np.int64), np.arange(200)
    with pytest.raises(InputError, match="12 different codes"):
        sound(Occurrences(units, codes), SEVERAL)
    chance = 1 - (1 - _tail(SEVERAL, SEVERAL.threshold - MASS)) ** 200  # if each counted in full
    assert chance > 50 * DELTA


def _tail(event: CodeDiscovery, least: int) -> float:
    end = int(12 * event.sigma)
    masses = np.exp(-0.5 * (np.arange(-end, end + 1) / event.sigma) ** 2)
    return float(masses[end + least :].sum() / masses.sum())


def listed(event: CodeDiscovery, patients: int) -> float:
    """The exact probability that a code is listed which so many patients have."""
    return _tail(event, event.threshold - patients * MASS) if patients else 0.0


def test_one_patient_more_changes_the_chance_of_a_code_as_little_as_is_claimed() -> None:
    exact: list[float] = []
    for patients in range(12):
        fewer, more = listed(ALONE, patients), listed(ALONE, patients + 1)
        for epsilon in (0.5, 1.0, 3.0):
            claim, growth = delta([ALONE], epsilon), math.exp(epsilon)
            assert more - growth * fewer <= claim and fewer - growth * more <= claim
            assert (1 - fewer) - growth * (1 - more) <= claim
        # the broken twin: a threshold on exact counts
        silence, codes = Silence(0), np.zeros(patients + 1, dtype=np.int64)
        exact.append(
            len(select_codes(Occurrences(np.arange(patients + 1), codes), ALONE, silence).codes)
        )
    step = np.flatnonzero(np.diff(exact))
    assert len(step) == 1  # one patient decides, and nothing hides which
    assert 1.0 - math.exp(1.0) * 0.0 > delta([ALONE], 1.0)


class OnlyDiscrete(OsEntropy):
    """Entropy that draws no noise but that of whole numbers."""

    def normal(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("noise of floating-point numbers")

    uniform = generator = normal


def test_noise_is_of_whole_numbers() -> None:
    many = Occurrences(np.arange(400), np.zeros(400, dtype=np.int64))
    found = select_codes(many, ALONE, PaidEntropy([ALONE], OnlyDiscrete()))
    assert found.counts.dtype == np.int64 and found.codes.tolist() == [0]

    def rounded(self: Any, sigma: float, size: int) -> Any:
        """Broken twin: floats, rounded."""
        return np.rint(sigma * self.normal(size)).astype(np.int64)

    with patch.object(OnlyDiscrete, "discrete_gaussian", rounded):
        with pytest.raises(AssertionError, match="floating-point"):
            select_codes(many, ALONE, PaidEntropy([ALONE], OnlyDiscrete()))


def test_a_code_that_was_not_found_is_nowhere_in_a_run(tmp_path: Path) -> None:
    """The code of one patient, in a column with groups and in one without, is in no file."""
    run = quick_fit(ward(), discovered_ward(), output=tmp_path / "run", epsilon=8.0)
    levels = {name: run.schema.column(name).levels for name in ("diagnosis", "device")}
    assert {"428.0", "250.01", "401"} < set(levels["diagnosis"])
    assert set(levels["device"]) == {"A001", "B002", "other"}
    table = run.sample(3000, seed=1)
    assert set(table["device"].dropna()) <= set(levels["device"])
    assert not _holds(tmp_path / "run", RARE) and not _holds(tmp_path / "run", "733.1")

    def everything(self: Any, selected: Any, counts: Any) -> tuple[str, ...]:
        """Broken twin: every code that occurs is listed."""
        return tuple(sorted(self.names))

    with patch.object(code_search.Searched, "published", everything):
        quick_fit(ward(), discovered_ward(), output=tmp_path / "twin", epsilon=8.0)
    assert _holds(tmp_path / "twin", RARE) and _holds(tmp_path / "twin", "733.1")


def test_codes_are_looked_for_once_with_the_event_that_was_charged() -> None:
    asked: list[CodeDiscovery] = []

    def watched(occurrences: Occurrences, event: CodeDiscovery, entropy: Any) -> Any:
        asked.append(event)
        return select_codes(occurrences, event, entropy)

    with patch.object(code_search, "select_codes", watched):
        run = quick_fit(ward(), discovered_ward())
    assert run.certificate is not None
    assert [event.to_dict() for event in asked] == run.certificate["events"][:1]


def _holds(folder: Path, code: str) -> bool:
    return any(code.encode() in file.read_bytes() for file in folder.iterdir())


def test_each_code_of_a_unit_counts_less_the_more_it_has() -> None:
    for codes in range(1, 60):
        assert codes * events.weight(codes) ** 2 <= MASS**2


def kept_of_equals(backwards: bool) -> dict[str, tuple[str, ...]]:
    """Which code is kept where all noisy counts are equal, and one is too many."""
    cells = [(f"p{place}", "401", ("A001", "B002")[place % 2]) for place in range(400)]
    schema = discovered_ward(device={**DEVICE, "most": 1})
    table = open_table(rows_of(cells[::-1] if backwards else cells), schema)
    return find_codes(table, schema, replace(SEVERAL, columns=2, rows_per_unit=2), Silence(0))


def test_equal_counts_are_told_apart_by_the_code_and_not_by_the_order_of_the_table() -> None:
    """Numbers of codes follow from the first patient who has each: nothing has paid for them."""
    assert (
        kept_of_equals(False)
        == kept_of_equals(True)
        == {"diagnosis": ("401",), "device": ("A001",)}
    )

    def by_number(self: Any, selected: Any, counts: Any) -> tuple[str, ...]:
        """Broken twin: of equal counts, the code that the table has first."""
        order = np.argsort(-counts, kind="stable")[: self._most]
        return tuple(sorted(list(self.names)[number] for number in selected[order]))

    with patch.object(code_search.Searched, "published", by_number):
        assert kept_of_equals(False) != kept_of_equals(True)
